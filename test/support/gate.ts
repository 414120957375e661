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
  reached(): void;
}

/** A gate in front of a port of this machine. */
export async function startGate(targetPort: number): Promise<Gate> {
  let mode: 'open' | 'shut' | 'silent' = 'open';
  const pairs = new Set<Pair>();
  const stops = { toServer: new Set<Stop>(), toClient: new Set<Stop>() };

  const listener = createServer((client) => {
    if (mode === 'shut') return void client.resetAndDestroy();
    const server = dial(targetPort, '127.0.0.1');
    const pair: Pair = { client, server, kept: mode === 'silent' ? [] : undefined };
    pairs.add(pair);
    client.on('data', (chunk) => {
      stopIfAsked(pair, stops.toServer, chunk);
      pass(pair, server, chunk);
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
  const text = chunk.toString('latin1');
  for (const stop of stops) {
    if (!stop.message.test(text)) continue;
    stops.delete(stop);
    pair.kept ??= [];
    stop.reached();
  }
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
