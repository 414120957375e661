import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { EmulatorClock } from '../platform.ts';
import { POSTGRES_USER } from './data-folders.ts';

/** Clients that `/_emulator/computes/{id}/connect` sends: real sessions, each with a transaction open, so that they count as busy. */
export interface RealClients {
  /** Resolves when all have reached the compute's door; they wait there until it is awake. */
  arrive(arrival: RealArrival): Promise<void>;
  /** The oldest ones leave; without a number, all. Returns how many do. */
  leave(computeId: string, connections?: number): number;
  close(): void;
}

interface RealArrival {
  computeId: string;
  url: string;
  connections: number;
  forMs?: number;
  reconnects: boolean;
}

interface RealClient {
  arrived: Promise<unknown>;
  leave(): void;
}

const PROTOCOL_VERSION = 196_608;
const PAUSE_BEFORE_RECONNECT_MS = 50;
/** A timer of more than 2^31 ms would fire at once, and again and again. */
const LONGEST_WAIT_MS = 3_600_000;
/** The first byte of the answer to a client that is let in. */
const AUTHENTICATION = 'R'.charCodeAt(0);

function startupMessage(): Buffer {
  const text = `user\0${POSTGRES_USER}\0database\0postgres\0application_name\0emulated client\0\0`;
  const message = Buffer.alloc(8 + text.length);
  message.writeInt32BE(message.length, 0);
  message.writeInt32BE(PROTOCOL_VERSION, 4);
  message.write(text, 8);
  return message;
}

function beginMessage(): Buffer {
  const text = 'BEGIN\0';
  const message = Buffer.alloc(5 + text.length);
  message.write('Q');
  message.writeInt32BE(4 + text.length, 1);
  message.write(text, 5);
  return message;
}

/** One session; `onLetIn` and `onClosed` tell how it fares. */
function openSession(url: string, onLetIn: () => void, onClosed: () => void): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname, () => socket.write(startupMessage()));
  let isLetIn = false;
  socket.on('data', (answer: Buffer) => {
    if (isLetIn || answer[0] !== AUTHENTICATION) return;
    isLetIn = true;
    socket.write(beginMessage());
    onLetIn();
  });
  socket.on('error', () => undefined);
  socket.on('close', onClosed);
  return socket;
}

/** A client that stays for its time, and dials again after it was cut off if it reconnects. */
function startClient(arrival: RealArrival, clock: EmulatorClock, onGone: (client: RealClient) => void): RealClient {
  let timer: NodeJS.Timeout | undefined;
  let endsAtMs: number | undefined;
  let hasLeft = false;

  const leaveOnTime = (): void => {
    const restMs = clock.realDelayMs(endsAtMs ?? 0);
    if (restMs > 0) timer = setTimeout(leaveOnTime, Math.min(restMs, LONGEST_WAIT_MS));
    else client.leave();
  };
  const letIn = (): void => {
    if (arrival.forMs === undefined || endsAtMs !== undefined) return;
    endsAtMs = clock.now() + arrival.forMs;
    leaveOnTime();
  };
  const closed = (): void => {
    if (hasLeft) return;
    if (arrival.reconnects) setTimeout(redial, PAUSE_BEFORE_RECONNECT_MS);
    else client.leave();
  };
  const redial = (): void => {
    if (!hasLeft) socket = openSession(arrival.url, letIn, closed);
  };
  let socket = openSession(arrival.url, letIn, closed);
  const client: RealClient = {
    arrived: once(socket, 'connect'),
    leave() {
      hasLeft = true;
      clearTimeout(timer);
      socket.destroy();
      onGone(client);
    },
  };
  return client;
}

export function createRealClients(clock: EmulatorClock): RealClients {
  const byCompute = new Map<string, Set<RealClient>>();
  const leave = (computeId: string, connections = Number.POSITIVE_INFINITY): number => {
    const leaving = [...(byCompute.get(computeId) ?? [])].slice(0, connections);
    for (const client of leaving) client.leave();
    return leaving.length;
  };
  return {
    async arrive(arrival) {
      const present = byCompute.get(arrival.computeId) ?? new Set();
      byCompute.set(arrival.computeId, present);
      const arriving = Array.from({ length: arrival.connections }, () =>
        startClient(arrival, clock, (gone) => void present.delete(gone)),
      );
      for (const client of arriving) present.add(client);
      await Promise.all(arriving.map(({ arrived }) => arrived));
    },
    leave,
    close() {
      for (const computeId of byCompute.keys()) leave(computeId);
    },
  };
}
