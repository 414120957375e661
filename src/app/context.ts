import type { CompiledPolicies } from '../domain/compiled-policies.ts';
import type { ConnectionProfile } from '../domain/connection-profile.ts';
import type { ManualChanges, PartialDisruption } from '../domain/disruption.ts';
import type { Clock } from '../ports/clock.ts';
import type { ConnectionCounters } from '../ports/connections.ts';
import type { ControlApi } from '../ports/control-api.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { Notifier } from '../ports/notifier.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Fleet } from './fleet.ts';
import type { FleetLease } from './fleet-lease.ts';
import type { GroupTime } from './group-time.ts';
import type { OperationDurations } from './operation-durations.ts';
import type { Outages } from './outages.ts';
import type { Overrides } from './overrides.ts';
import type { PolicySets, WriteLeave } from './policy-sets.ts';
import type { Samples } from './samples.ts';
import type { Slots } from './slots.ts';
import type { StoreWatch } from './store-watch.ts';

/** How often the daemon looks by itself, in real milliseconds. */
export interface Rhythm {
  /** Between two looks at the list of projects. */
  inventoryMs: number;
  /** Between two rounds of the keeper, which heals the queue and counts. */
  keeperMs: number;
  /** Between two looks at a compute whose change waits. */
  waitingMs: number;
  /** Between two looks at the files of the policies, and at what the group's store says of them. */
  rulesMs: number;
  /** Between two looks whether a source of connections is due. */
  samplingMs: number;
}

/** What whoever decides and writes works with; made once, in compose. */
export interface Context {
  clock: Clock;
  api: ControlApi;
  queue: JobQueue;
  store: Store;
  telemetry: Telemetry;
  notify: Notifier;
  fleet: Fleet;
  outages: Outages;
  slots: Slots;
  /** How long operations take, as far as it is known. */
  durations: OperationDurations;
  /** Boundaries that are surely in the queue; forgotten by every round of the keeper, since a queue can be lost. */
  scheduledBoundaries: Set<number>;
  overrides: Overrides;
  /** What was counted of connections. */
  samples: Samples;
  policies: CompiledPolicies;
  /** What holds where a policy says nothing. */
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  /** How many connections a size accepts, by account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  /** What the policies were made from, such as a commit. */
  revision: string | undefined;
  /** Leave to write at all; asked before each write. Rejects if that can't be told: then nothing may be written either. */
  mayWrite(): Promise<WriteLeave>;
  mode: 'enforce' | 'observe';
  rhythm: Rhythm;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
}

/** What a daemon has besides: it is one of a group, and lives long. */
export interface DaemonContext extends Context {
  sets: PolicySets;
  groupTime: GroupTime;
  storeWatch: StoreWatch;
  counters: ConnectionCounters;
  fleetLease: FleetLease;
}
