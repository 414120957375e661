import type { CompiledPolicies } from '../domain/compiled-policies.ts';
import type { Clock } from '../ports/clock.ts';
import type { ControlApi } from '../ports/control-api.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { Notifier } from '../ports/notifier.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Fleet } from './fleet.ts';
import type { Outages } from './outages.ts';

/** How often the daemon looks by itself, in real milliseconds. */
export interface Rhythm {
  /** Between two looks at the list of projects. */
  inventoryMs: number;
  /** Between two rounds of the keeper, which heals the queue and counts. */
  keeperMs: number;
  /** Between two looks at a compute whose change waits. */
  waitingMs: number;
}

/** What every part of the daemon works with; made once, in compose. */
export interface Context {
  clock: Clock;
  api: ControlApi;
  queue: JobQueue;
  store: Store;
  telemetry: Telemetry;
  notify: Notifier;
  fleet: Fleet;
  outages: Outages;
  policies: CompiledPolicies;
  mode: 'enforce' | 'observe';
  rhythm: Rhythm;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
}
