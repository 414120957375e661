import type { ConnectionProfile } from '../domain/connections/connection-profile.ts';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import type { ManualChanges, PartialDisruption } from '../domain/policy/disruption.ts';
import type { Clock } from '../ports/clock.ts';
import type { ConnectionCounters } from '../ports/connections.ts';
import type { ControlApi } from '../ports/control-api.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { Notifier } from '../ports/notifier.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { UntilItWorks } from './background.ts';
import type { Samples } from './connections/samples.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { StoreClock } from './group/clock-skew.ts';
import type { LeaderLease, WriteBlock } from './group/leader.ts';
import type { StoreWatch } from './group/store-loss.ts';
import type { StoredTimes } from './group/stored-times.ts';
import type { OperationDurations } from './operations/durations.ts';
import type { Slots } from './operations/restart-slots.ts';
import type { Overrides } from './overrides.ts';
import type { PolicySets, WritePermission } from './rollout/write-permission.ts';
import type { CurrentRules } from './rules.ts';
import type { Outages } from './telemetry/outages.ts';

/** How often the daemon looks by itself, in real milliseconds. */
export interface Rhythm {
  /** Between two looks at the list of projects. */
  inventoryMs: number;
  /** Between two rounds of the keeper, which heals the queue and counts. */
  resyncMs: number;
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
  /** The current rules. What follows is read through it, so that one assignment replaces all of it. */
  rules: CurrentRules;
  readonly policies: CompiledPolicies;
  /** What holds where a policy says nothing. */
  readonly disruption: PartialDisruption;
  readonly manualChanges: ManualChanges | undefined;
  /** How many connections a size accepts, by account. */
  readonly profiles: ReadonlyMap<string, ConnectionProfile>;
  /** What the policies were made from, such as a commit. */
  readonly revision: string | undefined;
  /** Leave to write at all; asked before each write. Rejects if that can't be told: then nothing may be written either. */
  mayWrite(): Promise<WritePermission>;
  mode: 'enforce' | 'observe';
  rhythm: Rhythm;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
}

/** What a daemon has besides: it is one of a group, and lives long. */
export interface DaemonContext extends Context {
  sets: PolicySets;
  storeClock: StoreClock;
  storeWatch: StoreWatch;
  counters: ConnectionCounters;
  leaderLease: LeaderLease;
  /** What was last known to keep this daemon from writing. */
  blocked(): WriteBlock | undefined;
  runInBackground: UntilItWorks;
  /** A daemon of this group is known to have run on this machine before. */
  hasRunHere: boolean;
  /** Under which outages tell of what queue and store rest on. */
  engineName: string;
  storedTimes: StoredTimes;
}
