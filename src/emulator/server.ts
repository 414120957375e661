import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { API_BASE, createApi, type EmulatorHost, type OwnAnswer, type OwnRequest } from './api.ts';
import { createControlRoutes } from './control/control-routes.ts';
import type { Fleet, FleetCompute } from './fleet.ts';
import {
  type Clients,
  createPlatform,
  createRequestLog,
  createSettableClock,
  createWorldClients,
  type EmulatorClock,
  type Platform,
} from './platform.ts';
import type { PostgresBinaries } from './postgres/data-folders.ts';
import { createPostgresClients } from './postgres/postgres-clients.ts';
import { startPostgresPower } from './postgres/power.ts';
import { createRateLimits, type LimitKind } from './rate-limits.ts';
import { createRequestFaults, type RequestFaults } from './request-faults.ts';
import { FIRST_USER_ID } from './world/accounts.ts';
import { createWorld } from './world/create-world.ts';
import type { Behaviours, ProjectUpdatedAt, WorldEvent, WorldState } from './world/entities.ts';
import { execute } from './world/execute.ts';
import { createRandom, nextToken } from './world/random.ts';
import { DAY_MS, HOUR_MS } from './world/units.ts';

const REQUESTS_KEPT = 50_000;
const DEFAULT_SEED = 1;
const AVAILABILITY_CHECK_MS = 3 * DAY_MS;

/** An emulator that answers requests of the same process. */
export interface EmulatedService {
  /** Answers a request to the API. */
  answer(request: OwnRequest): Promise<OwnAnswer>;
  apiKey: string;
  platform: Platform;
  requestFaults: RequestFaults;
}

export interface EmulatorOptions extends ServiceOptions {
  /** Port 0 lets the system choose. */
  listen: { host: string; port: number };
  /** Makes every compute a real Postgres server on loopback; absent: none. See docs/emulator.md. */
  postgres?: PostgresBinaries;
}

interface ServiceOptions {
  fleet: Fleet;
  /** Absent: one made from the seed. */
  apiKey?: string;
  seed?: number;
  /** Requests in any real minute over all routes; absent: unlimited. */
  rateLimitPerMinute?: number;
  /** Requests in any real second on one route; absent: unlimited. */
  burstPerSecond?: number;
  /** How these two limits are counted; absent: over sliding windows, as documented. */
  limitKind?: LimitKind;
  /** When the project list shows a change; absent: at once. */
  projectUpdatedAt?: ProjectUpdatedAt;
  /** Requests in any real minute on the consumption routes together; absent: unlimited. */
  usageLimitPerMinute?: number;
  /** `wakes`: a new size starts a sleeping compute for a moment; absent: it stays asleep. */
  idlePatch?: 'stays' | 'wakes';
  /** Behaviours of the real service that are not certain. */
  behaviours?: Partial<Behaviours>;
  /** True: an availability check starts a sleeping compute. */
  checksWake?: boolean;
  /** The duration of every operation; absent: as on the real service, by action. */
  operationTimeMs?: number;
  /** The mean interval between the platform's own checks of a compute; absent: three days; 0: never. */
  availabilityCheckMs?: number;
  /** Called after each simulated hour of the fleet's history, except for the last. */
  onHistory?: (progress: { doneMs: number; allMs: number }) => void;
  /** A clock that the caller drives; absent: real time, settable over `POST /_emulator/clock`. */
  clock?: EmulatorClock;
  /** Real time and ids; absent: the process's own. */
  host?: EmulatorHost;
}

export interface Emulator {
  /** The API's base URL: ends in `/api/v2`. */
  url: string;
  /** The origin of `/_emulator/…`: no path. */
  origin: string;
  apiKey: string;
  /** Calls `listener` with events, in order, until the returned function is called. */
  onEvents(listener: (events: readonly WorldEvent[]) => void): () => void;
  /** Cuts every connection and frees the port. */
  close(): Promise<void>;
}

function listen(server: Server, at: EmulatorOptions['listen']): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at.port, at.host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : at.port);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** An IPv6 address stands in brackets in a URL. */
function originOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Starts the computes: simulated by the world, or real servers with the fleet's clients. */
async function startComputes(
  platform: Platform,
  { postgres: binaries, fleet }: EmulatorOptions,
): Promise<{ clients: Clients; close(): Promise<void> }> {
  if (binaries === undefined) return { clients: createWorldClients(platform), close: async () => undefined };
  const power = await startPostgresPower(platform, binaries);
  const clients = createPostgresClients(platform, power);
  const arrivals = fleet.projects
    .flatMap(({ computes }) => computes)
    .filter(({ state, connections }) => state === 'active' && connections > 0)
    .map(({ id, connections }) => clients.arrive({ computeId: id, connections, reconnects: false }));
  await Promise.all(arrivals);
  return {
    clients,
    async close() {
      clients.close();
      await power.close();
    },
  };
}

/** Creates the world of the fleet, and simulates its history. With real servers, the fleet's clients are real too, and connect later. */
function createEmulatedWorld(options: PlatformOptions, startMs: number): WorldState {
  const { fleet, availabilityCheckMs = AVAILABILITY_CHECK_MS } = options;
  const hasRealServers = options.postgres !== undefined;
  const allMs = fleet.historyMs ?? 0;
  const world = createWorld({
    fleet: hasRealServers ? withoutConnections(fleet) : fleet,
    seed: options.seed ?? DEFAULT_SEED,
    startMs: startMs - allMs,
    hasRealServers,
    operationTimeMs: options.operationTimeMs,
    availabilityCheckMs: availabilityCheckMs > 0 ? availabilityCheckMs : undefined,
    checksWake: options.checksWake,
    idlePatch: options.idlePatch,
    projectUpdatedAt: options.projectUpdatedAt,
    behaviours: options.behaviours,
  });
  // The history is simulated, so that its operations and its usage agree.
  for (let doneMs = HOUR_MS; doneMs < allMs; doneMs += HOUR_MS) {
    execute(world, { kind: 'pass_time' }, startMs - allMs + doneMs);
    options.onHistory?.({ doneMs, allMs });
  }
  execute(world, { kind: 'pass_time' }, startMs);
  return world;
}

function withoutConnections(fleet: Fleet): Fleet {
  const disconnect = (compute: FleetCompute): FleetCompute => ({ ...compute, connections: 0 });
  return { ...fleet, projects: fleet.projects.map((one) => ({ ...one, computes: one.computes.map(disconnect) })) };
}

/** The time and the ids of this process. */
const PROCESS_HOST: EmulatorHost = {
  monotonicMs: () => performance.now(),
  wait: (ms) => delay(ms),
  newId: () => randomUUID(),
};

type PlatformOptions = ServiceOptions & Pick<EmulatorOptions, 'postgres'>;

/** The part of an emulator that exists before its computes start. */
function createPlatformWithKey(options: PlatformOptions) {
  const seed = options.seed ?? DEFAULT_SEED;
  const ownClock = createSettableClock();
  const clock = options.clock ?? ownClock;
  const platform = createPlatform({ world: createEmulatedWorld(options, clock.now()), clock });
  const apiKey = options.apiKey ?? nextToken(createRandom(seed));
  platform.run({
    kind: 'create_key',
    wanted: { kind: 'personal', name: 'first', userId: FIRST_USER_ID, token: apiKey },
  });
  return { seed, settableClock: options.clock === undefined ? ownClock : undefined, platform, apiKey };
}

function createApp(
  { seed, settableClock, platform, apiKey }: ReturnType<typeof createPlatformWithKey>,
  clients: Clients,
  options: ServiceOptions,
) {
  const requests = createRequestLog(REQUESTS_KEPT);
  let lastFault = 0;
  const nextFaultId = () => {
    lastFault += 1;
    return `fault-${lastFault}`;
  };
  const requestFaults = createRequestFaults(nextFaultId);
  const rateLimits = createRateLimits({
    kind: options.limitKind,
    perMinute: options.rateLimitPerMinute,
    perSecond: options.burstPerSecond,
  });
  const usageLimits = createRateLimits({ perMinute: options.usageLimitPerMinute });
  const host = options.host ?? PROCESS_HOST;
  const { app, answer } = createApi({ platform, host, requests, requestFaults, rateLimits, usageLimits });
  const control = { platform, clients, requests, requestFaults, nextFaultId, seed, settableClock };
  app.route('/_emulator', createControlRoutes(control));
  return { app, answer, apiKey, platform, requestFaults };
}

/** Creates the control API on a world made of `fleet`, for requests of this process only. It listens on no port. */
export function createEmulatedService(options: ServiceOptions): EmulatedService {
  const prepared = createPlatformWithKey(options);
  const { app: _, ...service } = createApp(prepared, createWorldClients(prepared.platform), options);
  return service;
}

/** Starts the control API on a world made of `fleet`. Rejects if it can't listen, with the system's error, or if a Postgres server doesn't start. */
export async function startEmulator(options: EmulatorOptions): Promise<Emulator> {
  const prepared = createPlatformWithKey(options);
  const computes = await startComputes(prepared.platform, options);
  const { app, apiKey, platform } = createApp(prepared, computes.clients, options);
  const server = createServer(getRequestListener(app.fetch));
  const port = await listen(server, options.listen).catch(async (error: unknown) => {
    await computes.close();
    throw error;
  });
  const origin = originOf(options.listen.host, port);
  return {
    url: `${origin}${API_BASE}`,
    origin,
    apiKey,
    onEvents: platform.onEvents,
    async close() {
      await close(server);
      await computes.close();
    },
  };
}
