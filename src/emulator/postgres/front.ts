import { createServer, connect as dial, type Socket } from 'node:net';
import type { Platform } from '../platform.ts';
import type { WorldEvent } from '../world/entities.ts';

/** The listener of one compute. It accepts clients even if the compute sleeps, and holds them until it has started. */
export interface Front {
  port: number;
  /** Number of clients that the server has refused as too many. */
  refused(): number;
  /** Connects a client to the server, or disconnects it. */
  onEvent(event: Extract<WorldEvent, { type: 'clients' }>): void;
  close(): Promise<void>;
}

interface FrontOptions {
  computeId: string;
  platform: Platform;
  /** The socket of the compute's server; undefined while none runs. */
  socketPath(): string | undefined;
  /** True while the server is being stopped: sessions that end are then cut off by the server, not by their clients. */
  isStopping(): boolean;
}

const HOST = '127.0.0.1';

const ERROR = 'E'.charCodeAt(0);
const AUTHENTICATION = 'R'.charCodeAt(0);
/** SQLSTATE of "too many clients already", as a field of the error. */
const TOO_MANY = 'C53300\0';

/** A FATAL error message of the Postgres protocol. */
function fatal(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C57P03\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/**
 * Calls `onRefused` if the server refuses the client because there are too many. The server's first message says so. Before that message comes
 * only the answer to a request for encryption.
 */
function countRefusal(server: Socket, onRefused: () => void): void {
  const readAnswer = (answer: Buffer): void => {
    if (answer[0] !== ERROR && answer[0] !== AUTHENTICATION) return;
    server.off('data', readAnswer);
    if (answer[0] === ERROR && answer.includes(TOO_MANY)) onRefused();
  };
  server.on('data', readAnswer);
}

export async function openFront(options: FrontOptions): Promise<Front> {
  const { computeId, platform } = options;
  const clients = new Map<string, Socket>();
  let lastNumber = 0;
  let refused = 0;

  const leave = (groupId: string): void => {
    if (clients.delete(groupId) && !options.isStopping()) {
      platform.run({ kind: 'change_clients', computeId, groupId, doing: 'leave' });
    }
  };

  const connectToServer = (groupId: string, client: Socket): void => {
    const path = options.socketPath();
    if (path === undefined) return void client.end(fatal('the compute is not running'));
    const server = dial(path);
    const activity = createSessionActivity((isBusy) => {
      platform.run({ kind: 'change_clients', computeId, groupId, doing: isBusy ? 'work' : 'rest' });
    });
    client.on('data', activity.fromClient);
    server.on('data', activity.fromServer);
    countRefusal(server, () => {
      refused += 1;
    });
    client.pipe(server).pipe(client);
    server.on('error', () => client.destroy());
    server.on('close', () => client.end());
    client.on('close', () => server.destroy());
  };

  const accept = (client: Socket): void => {
    lastNumber += 1;
    const groupId = `${computeId}/${lastNumber}`;
    clients.set(groupId, client);
    client.on('error', () => undefined);
    client.on('close', () => leave(groupId));
    const outcome = platform.run({ kind: 'connect', computeId, connections: 1, reconnects: false, groupId });
    if (!outcome.ok) client.end(fatal(outcome.refusal.message));
  };

  const server = createServer({ pauseOnConnect: true }, accept);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, HOST, resolve);
  });
  const address = server.address();
  return {
    refused: () => refused,
    port: typeof address === 'object' && address !== null ? address.port : 0,
    onEvent({ groupId, change }) {
      const client = clients.get(groupId);
      if (client === undefined) return;
      if (change === 'connected') return connectToServer(groupId, client);
      clients.delete(groupId);
      if (change === 'dropped') client.destroy();
      else client.end(fatal('the compute could not be started'));
    },
    close() {
      for (const client of clients.values()) client.destroy();
      clients.clear();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Follows both directions of a Postgres session. The session is busy while its client waits for an answer or has a transaction open. */
interface SessionActivity {
  fromClient(chunk: Buffer): void;
  fromServer(chunk: Buffer): void;
}

/** The message that ends every answer; its only byte says if a transaction is open. */
const READY_FOR_QUERY = 'Z'.charCodeAt(0);
const NO_TRANSACTION = 'I'.charCodeAt(0);
const HEADER_BYTES = 5;
/** SSLRequest and GSSENCRequest, which a client may send before its first message; the answer is a single byte. */
const NEGOTIATION_CODES: ReadonlySet<number> = new Set([80_877_103, 80_877_104]);
const NEGOTIATION_BYTES = 8;

function isNegotiation(chunk: Buffer): boolean {
  return chunk.length === NEGOTIATION_BYTES && NEGOTIATION_CODES.has(chunk.readInt32BE(4));
}

/** `onChange` is called when the session becomes idle or busy. A session begins busy. */
export function createSessionActivity(onChange: (isBusy: boolean) => void): SessionActivity {
  let isBusy = true;
  let negotiations = 0;
  let hasStarted = false;
  /** The server's current message: the header bytes read so far, and the remaining length of the body. */
  let header: number[] = [];
  let bodyBytes = 0;

  const setBusy = (next: boolean): void => {
    if (next === isBusy) return;
    isBusy = next;
    onChange(next);
  };

  const readByte = (byte: number): void => {
    if (header.length < HEADER_BYTES) {
      header.push(byte);
      if (header.length === HEADER_BYTES) bodyBytes = Buffer.from(header).readInt32BE(1) - 4;
    } else {
      bodyBytes -= 1;
      if (header[0] === READY_FOR_QUERY) setBusy(byte !== NO_TRANSACTION);
    }
    if (header.length === HEADER_BYTES && bodyBytes === 0) header = [];
  };

  return {
    fromClient(chunk) {
      if (!hasStarted && isNegotiation(chunk)) negotiations += 1;
      else hasStarted = true;
      setBusy(true);
    },
    fromServer(chunk) {
      let index = Math.min(negotiations, chunk.length);
      negotiations -= index;
      while (index < chunk.length) {
        const isInBody = header.length === HEADER_BYTES && header[0] !== READY_FOR_QUERY;
        if (isInBody) {
          const step = Math.min(bodyBytes, chunk.length - index);
          bodyBytes -= step;
          index += step;
          if (bodyBytes === 0) header = [];
        } else {
          readByte(chunk[index] ?? 0);
          index += 1;
        }
      }
    },
  };
}
