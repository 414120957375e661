import type { WorldEvent, WorldState } from './world/entities.ts';
import { type Arrival, type Command, execute } from './world/execute.ts';
import type { Outcome } from './world/outcome.ts';

export interface Platform {
  /** The world, advanced to now. */
  world(): WorldState;
  /** The world after the last command, not advanced. */
  peek(): WorldState;
  /** Executes a command now. */
  run(command: Command): Outcome;
  clock: EmulatorClock;
  /** Calls `listener` with events, in order, until the returned function is called. */
  onEvents(listener: (events: readonly WorldEvent[]) => void): () => void;
}

export function createPlatform(options: { world: WorldState; clock: EmulatorClock }): Platform {
  const { world, clock } = options;
  const listeners = new Set<(events: readonly WorldEvent[]) => void>();
  const run = (command: Command): Outcome => {
    const { outcome, events } = execute(world, command, clock.now());
    if (events.length > 0) for (const listener of listeners) listener(events);
    return outcome;
  };
  return {
    clock,
    run,
    peek: () => world,
    world() {
      run({ kind: 'pass_time' });
      return world;
    },
    onEvents(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The time of the emulated platform; it may run faster than real time. */
export interface EmulatorClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Real milliseconds until the instant; 0 if it has passed. */
  realDelayMs(instantMs: number): number;
}

export interface SettableClock extends EmulatorClock {
  /** Jumps to `nowMs` and continues at `speed` times real time; a missing field stays as it is. */
  set(change: { nowMs?: number | undefined; speed?: number | undefined }): void;
  speed(): number;
}

export function createSettableClock(): SettableClock {
  let anchorRealMs = Date.now();
  let anchorMs = anchorRealMs;
  let speed = 1;
  const now = (): number => Math.floor(anchorMs + Math.max(0, Date.now() - anchorRealMs) * speed);
  return {
    now,
    speed: () => speed,
    realDelayMs: (instantMs) =>
      speed > 0 ? Math.max(0, Math.ceil((instantMs - now()) / speed)) : Number.POSITIVE_INFINITY,
    set(change) {
      anchorMs = change.nowMs ?? now();
      anchorRealMs = Date.now();
      speed = change.speed ?? speed;
    },
  };
}

/** Clients of computes, as `/_emulator` connects and disconnects them. */
export interface Clients {
  arrive(arrival: Omit<Arrival, 'groupId'>): Promise<Outcome>;
  /** Disconnects this many clients, the oldest first; without a number, all. */
  leave(computeId: string, connections?: number): Promise<Outcome>;
  /** The URL of a compute's server; undefined without real servers. */
  urlOf(computeId: string): string | undefined;
  /** The number of clients that the compute's server has refused as too many; undefined without real servers. */
  refusedOf(computeId: string): number | undefined;
}

/** Clients that exist in the world only. */
export function createWorldClients(platform: Platform): Clients {
  return {
    arrive: async (arrival) => platform.run({ kind: 'connect', ...arrival }),
    leave: async (computeId, connections) => platform.run({ kind: 'disconnect', computeId, connections }),
    urlOf: () => undefined,
    refusedOf: () => undefined,
  };
}

/** A request as `GET /_emulator/requests` shows it. Headers are not kept, as they contain the API key. */
interface RecordedRequest {
  /** ISO 8601, the emulator's clock when the request arrived. */
  at: string;
  method: string;
  /** The path that was sent, with the query. */
  path: string;
  /** The template, e.g. `/projects/{project_id}`; absent for a path that the API doesn't have. */
  route?: string;
  status: number;
  body?: unknown;
  request_id: string;
}

export interface RequestLog {
  add(request: RecordedRequest): void;
  /** The newest requests, oldest first, and the number of older ones that are no longer kept. */
  read(): { requests: RecordedRequest[]; forgotten: number };
  clear(): void;
}

/** Keeps the newest `capacity` requests, and up to as many older ones. */
export function createRequestLog(capacity: number): RequestLog {
  let requests: RecordedRequest[] = [];
  let forgotten = 0;
  return {
    add(request) {
      requests.push(request);
      // Removing half of the requests at once costs less than removing one each time.
      if (requests.length < 2 * capacity) return;
      requests = requests.slice(-capacity);
      forgotten += capacity;
    },
    read: () => ({ requests, forgotten }),
    clear() {
      requests = [];
      forgotten = 0;
    },
  };
}
