/** A way between a daemon and what it depends on, which a test can shut, or stop at a chosen message. */
import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';

export interface Gate {
  port: number;
  /**
   * Resolves when a daemon sends something that matches. It does not arrive, nor does what follows it on its connection, until
   * `open` is called: whoever is killed at that moment has never sent it. Each call stops one message.
   */
  stopAt(message: RegExp): Promise<void>;
  /** The same for what a daemon is answered. */
  stopAnswer(message: RegExp): Promise<void>;
  /** The same for the answer to what a daemon sends that matches: that itself arrives. */
  stopAnswerTo(message: RegExp): Promise<void>;
  /** Ends all connections and lets none through. */
  shut(): void;
  /** Takes in everything and passes nothing on, in both directions, as a network does that has lost its way. */
  silence(): void;
  /** Passes on what was kept back, and everything from now on. */
  open(): void;
  close(): Promise<void>;
}

/** One connection of a daemon. */
interface Pair {
  client: Socket;
  server: Socket;
  /** What waits to be passed on, or undefined while nothing is kept back. */
  kept: { to: Socket; chunk: Buffer }[] | undefined;
}

interface Stop {
  message: RegExp;
  /** The only connection that is meant; absent: any. */
  of?: Pair;
  reached(): void;
}

/** Redis asks for the text of a script that it does not know: the script has not run yet. */
const ANSWERED = /^(?!-NOSCRIPT)/;

/** A gate in front of a port of this machine. */
export async function startGate(targetPort: number): Promise<Gate> {
  let mode: 'open' | 'shut' | 'silent' = 'open';
  const pairs = new Set<Pair>();
  const stops = { toServer: new Set<Stop>(), toClient: new Set<Stop>(), answered: new Set<Stop>() };

  const listener = createServer((client) => {
    if (mode === 'shut') return void client.resetAndDestroy();
    const server = dial(targetPort, '127.0.0.1');
    const pair: Pair = { client, server, kept: mode === 'silent' ? [] : undefined };
    pairs.add(pair);
    client.on('data', (chunk) => {
      stopIfAsked(pair, stops.toServer, chunk);
      pass(pair, server, chunk);
      for (const { reached } of take(pair, stops.answered, chunk))
        stops.toClient.add({ message: ANSWERED, of: pair, reached });
    });
    server.on('data', (chunk) => {
      stopIfAsked(pair, stops.toClient, chunk);
      pass(pair, client, chunk);
    });
    for (const end of [client, server]) {
      end.on('error', () => {});
      end.on('close', () => {
        pairs.delete(pair);
        client.destroy();
        server.destroy();
      });
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  const cutAll = () => {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  };
  return {
    port: address.port,
    stopAt: (message) => new Promise((reached) => stops.toServer.add({ message, reached })),
    stopAnswer: (message) => new Promise((reached) => stops.toClient.add({ message, reached })),
    stopAnswerTo: (message) => new Promise((reached) => stops.answered.add({ message, reached })),
    shut() {
      mode = 'shut';
      cutAll();
    },
    silence() {
      mode = 'silent';
      for (const pair of pairs) pair.kept ??= [];
    },
    open() {
      mode = 'open';
      for (const pair of pairs) letGo(pair);
    },
    async close() {
      cutAll();
      listener.close();
      await once(listener, 'close');
    },
  };
}

function stopIfAsked(pair: Pair, stops: Set<Stop>, chunk: Buffer): void {
  for (const stop of take(pair, stops, chunk)) {
    pair.kept ??= [];
    stop.reached();
  }
}

/** Those that mean this message; each means one. */
function take(pair: Pair, stops: Set<Stop>, chunk: Buffer): Stop[] {
  const text = chunk.toString('latin1');
  const meant = [...stops].filter(({ message, of = pair }) => of === pair && message.test(text));
  for (const stop of meant) stops.delete(stop);
  return meant;
}

function pass({ kept }: Pair, to: Socket, chunk: Buffer): void {
  if (kept) kept.push({ to, chunk });
  else to.write(chunk);
}

function letGo(pair: Pair): void {
  const { kept = [] } = pair;
  pair.kept = undefined;
  for (const { to, chunk } of kept) to.write(chunk);
}
