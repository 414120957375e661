import { once } from 'node:events';
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from 'pg';
import type { Clients, EmulatorClock, Platform } from '../platform.ts';
import { countConnections } from '../world/connections.ts';
import type { Compute } from '../world/entities.ts';
import { type Outcome, refuse } from '../world/outcome.ts';
import type { PostgresPower } from './power.ts';

interface PostgresClients extends Clients {
  close(): void;
}

/** The longest wait, in milliseconds, until the world counts clients that have connected or left. */
const LONGEST_WAIT_MS = 2_000;

function countPresent(compute: Compute): number {
  return countConnections(compute.connected) + countConnections(compute.waiting);
}

/** Clients with real sessions on real servers. Each keeps a transaction open, so that it counts as busy. */
export function createPostgresClients(platform: Platform, power: PostgresPower): PostgresClients {
  const byCompute = new Map<string, Set<RealClient>>();

  const waitUntilCounted = async (compute: Compute, isCounted: () => boolean): Promise<Outcome> => {
    const untilMs = performance.now() + LONGEST_WAIT_MS;
    while (!isCounted() && performance.now() < untilMs) await nextTurn();
    return { ok: true, compute, operations: [] };
  };

  const disconnect = (computeId: string, connections = Number.POSITIVE_INFINITY): number => {
    const leaving = [...(byCompute.get(computeId) ?? [])].slice(0, connections);
    for (const client of leaving) client.leave();
    return leaving.length;
  };

  return {
    urlOf: power.urlOf,
    refusedOf: power.refusedOf,
    async arrive({ computeId, connections, forMs, reconnects }) {
      const compute = platform.world().computes.get(computeId);
      const url = power.urlOf(computeId);
      if (compute === undefined || url === undefined) return refuse('not_found', 'endpoint not found');
      if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
      const before = countPresent(compute);
      const clients = byCompute.get(computeId) ?? new Set();
      byCompute.set(computeId, clients);
      const arriving = Array.from({ length: connections }, () =>
        startClient({ url, forMs, reconnects, clock: platform.clock, onGone: (gone) => clients.delete(gone) }),
      );
      for (const client of arriving) clients.add(client);
      await Promise.all(arriving.map(({ arrived }) => arrived));
      return waitUntilCounted(compute, () => countPresent(compute) >= before + connections);
    },
    async leave(computeId, connections) {
      const compute = platform.world().computes.get(computeId);
      if (compute === undefined) return refuse('not_found', 'endpoint not found');
      const before = countPresent(compute);
      const left = disconnect(computeId, connections);
      return waitUntilCounted(compute, () => countPresent(compute) <= before - left);
    },
    close() {
      for (const computeId of byCompute.keys()) disconnect(computeId);
    },
  };
}

interface RealClient {
  /** Resolves when the client has reached the listener of the compute, where it waits until the compute is awake. */
  arrived: Promise<unknown>;
  leave(): void;
}

const PAUSE_BEFORE_RECONNECT_MS = 50;
/** Timers of more than 2^31 ms would fire at once. */
const LONGEST_TIMER_MS = 3_600_000;

/** Opens a session and begins a transaction in it. */
function openSession(url: string, onAccepted: () => void, onClosed: () => void): Socket {
  const socket = new Socket();
  const session = new Client({ connectionString: url, application_name: 'emulated client', stream: () => socket });
  const begin = async () => {
    await session.connect();
    onAccepted();
    await session.query('BEGIN');
  };
  session.on('error', () => undefined);
  session.on('end', onClosed);
  void begin().catch(() => undefined);
  return socket;
}

interface ClientOptions {
  url: string;
  forMs: number | undefined;
  reconnects: boolean;
  clock: EmulatorClock;
  onGone(client: RealClient): void;
}

/** A client that leaves after `forMs`. With `reconnects`, it connects again after it was cut off. */
function startClient({ url, forMs, reconnects, clock, onGone }: ClientOptions): RealClient {
  let timer: NodeJS.Timeout | undefined;
  let endsAtMs: number | undefined;
  let hasLeft = false;

  const leaveOnTime = (): void => {
    const restMs = clock.realDelayMs(endsAtMs ?? 0);
    if (restMs > 0) timer = setTimeout(leaveOnTime, Math.min(restMs, LONGEST_TIMER_MS));
    else client.leave();
  };
  const onAccepted = (): void => {
    if (forMs === undefined || endsAtMs !== undefined) return;
    endsAtMs = clock.now() + forMs;
    leaveOnTime();
  };
  const onClosed = (): void => {
    if (hasLeft) return;
    if (reconnects) setTimeout(redial, PAUSE_BEFORE_RECONNECT_MS);
    else client.leave();
  };
  const redial = (): void => {
    if (!hasLeft) socket = openSession(url, onAccepted, onClosed);
  };
  let socket = openSession(url, onAccepted, onClosed);
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
