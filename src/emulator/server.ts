import { createServer, type Server } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { API_BASE, createApi } from './api.ts';
import { createSettableClock, type EmulatorClock } from './clock.ts';
import { createControlRoutes } from './control/control-routes.ts';
import type { Fleet } from './fleet.ts';
import { createPlatform } from './platform.ts';
import { createRateLimits } from './rate-limits.ts';
import { createRequestFaults } from './request-faults.ts';
import { createRequestLog } from './request-log.ts';
import { FIRST_USER_ID } from './world/accounts.ts';
import { createWorld } from './world/create-world.ts';
import type { WorldEvent } from './world/entities.ts';
import { createRandom, nextToken } from './world/random.ts';

const REQUESTS_KEPT = 50_000;
const DEFAULT_SEED = 1;
const AVAILABILITY_CHECK_MS = 3 * 86_400_000;

export interface EmulatorOptions {
  /** Port 0 lets the system choose. */
  listen: { host: string; port: number };
  fleet: Fleet;
  /** Absent: one made from the seed. */
  apiKey?: string;
  seed?: number;
  /** Requests in any real minute over all routes; absent: unlimited. */
  rateLimitPerMinute?: number;
  /** Requests in any real second on one route; absent: unlimited. */
  burstPerSecond?: number;
  /** Every operation takes so long; absent: as on the real service, by action. */
  operationTimeMs?: number;
  /** How often the platform checks each compute by itself, on average; absent: once in three days; 0: never. */
  availabilityCheckMs?: number;
  /** Time shared with the caller, who drives it; absent: real time, settable over `POST /_emulator/clock`. */
  clock?: EmulatorClock;
}

export interface Emulator {
  /** Where a client finds the API: ends in `/api/v2`. */
  url: string;
  /** Where `/_emulator/…` is found: no path. */
  origin: string;
  apiKey: string;
  /** Tells what happens in the world, in order, whenever it is looked at; returns how to stop it. */
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

/** Starts the control API on a world made of `fleet`. Rejects with the system's error if it can't listen. */
export async function startEmulator(options: EmulatorOptions): Promise<Emulator> {
  const seed = options.seed ?? DEFAULT_SEED;
  const settableClock = options.clock === undefined ? createSettableClock() : undefined;
  const clock = options.clock ?? settableClock ?? createSettableClock();
  const { operationTimeMs, rateLimitPerMinute, burstPerSecond } = options;
  const { availabilityCheckMs = AVAILABILITY_CHECK_MS } = options;
  const world = createWorld({
    fleet: options.fleet,
    seed,
    startMs: clock.now(),
    ...(operationTimeMs === undefined ? {} : { operationTimeMs }),
    ...(availabilityCheckMs > 0 ? { availabilityCheckMs } : {}),
  });
  const apiKey = options.apiKey ?? `napi_${nextToken(createRandom(seed), 64)}`;
  const platform = createPlatform({ world, clock });
  platform.run({
    kind: 'create_key',
    wanted: { kind: 'personal', name: 'first', userId: FIRST_USER_ID, token: apiKey },
  });
  const requests = createRequestLog(REQUESTS_KEPT);
  let faultNumber = 0;
  const nextFaultId = (): string => {
    faultNumber += 1;
    return `fault-${faultNumber}`;
  };
  const requestFaults = createRequestFaults(nextFaultId);
  const rateLimits = createRateLimits({
    ...(rateLimitPerMinute === undefined ? {} : { perMinute: rateLimitPerMinute }),
    ...(burstPerSecond === undefined ? {} : { perSecond: burstPerSecond }),
  });
  const app = createApi({ platform, requests, requestFaults, rateLimits });
  const control = { platform, requests, requestFaults, nextFaultId, seed };
  app.route('/_emulator', createControlRoutes(settableClock === undefined ? control : { ...control, settableClock }));
  const server = createServer(getRequestListener(app.fetch));
  const port = await listen(server, options.listen);
  const origin = originOf(options.listen.host, port);
  return { url: `${origin}${API_BASE}`, origin, apiKey, onEvents: platform.onEvents, close: () => close(server) };
}
