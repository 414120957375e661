import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { HistoryEntry } from '../domain/records/history.ts';
import type { OutboxEntry, OutboxStore } from './outbox.ts';

/**
 * Permission to write to a project. It holds for a bounded real time; the fencing token grows with each holder, so that one who
 * slept past its end can be told from the one who came after.
 */
export interface Lease {
  name: string;
  holder: string;
  token: number;
}

/** The identity of a daemon's decisions. A daemon of 0.1.0 knows the hash of its policies only. */
export interface DecisionIdentity {
  /** Of the policies: approvals, history and messages name it. */
  setHash: string;
  /** Of policies, settings and engine together: daemons with the same one decide alike. */
  decisionHash?: string;
  /** The version of the engine. */
  decisionVersion?: number;
}

/** The identity of a group's decisions. The number grows with each other identity, also over a store that came back empty. */
export interface Generation extends DecisionIdentity {
  number: number;
}

/** A person's yes to a staged policy set. */
export interface Approval {
  hash: string;
  who: string;
  /** Milliseconds since the epoch. */
  atMs: number;
}

/** A count of a compute's connections. */
export interface ConnectionSample {
  /** Milliseconds since the epoch. */
  atMs: number;
  connections: number;
  maxConnections?: number;
  /** For the highest of several counts: since when. */
  sinceMs?: number;
  /** The count that it is taken from, where nothing has happened since. */
  countedAtMs?: number;
  /** Name of the source. */
  source?: string;
}

/** The parts of a decision's basis that the group may change at any moment. */
export interface DecidedBy {
  /** The revision of holds and freezes, as {@link OverrideStore.overrides} gave it. */
  overrides: string;
  /** Number of the policy set, or `any` where the decision is not one of a registered set (`ebb apply`). */
  generation: number | 'any';
}

/** `outdated`: a hold, a freeze or the policy set has changed since the decision, so nothing was stored. */
export type IntentOutcome = 'stored' | 'lease_lost' | 'outdated';

/** A compute with a pending write: a request that may be on its way, or whose answer was lost. */
export interface PendingWrite {
  projectId: string;
  computeId: string;
  record: ComputeRecord;
}

/** `full`: as many are kept as the store takes; some must be deleted or expire first. */
export type PutOutcome = { ok: true } | { ok: false; error: { code: 'full'; limit: number } };

/** Data stored in the same step as the entry that it belongs to, or not at all. */
export interface Also {
  /** One of {@link AUDIT_KINDS}. */
  audit?: HistoryEntry;
}

interface LeaseStore {
  /**
   * The lease, or undefined while it is held, also by this holder: two jobs of one daemon keep each other out too. `ttlMs` is
   * real time.
   */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Prolongs a lease to `ttlMs` from now; false if it is no longer held. */
  renewLease(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Gives the lease back; does nothing if it is no longer held. */
  releaseLease(lease: Lease): Promise<void>;
}

interface RecordStore {
  /** The records of a project's computes by compute id, without those that this version can't read. */
  records(projectId: string): Promise<Map<string, ComputeRecord>>;
  /** By compute id, the projects of the records that could not be read when they were last read. Such a compute must not be touched. */
  brokenRecords(): Promise<ReadonlyMap<string, string>>;
  /**
   * Stores one record if the lease is still held; false, and nothing written, if it is not. In the same step it stores the entries in
   * `also`.
   */
  putRecord(
    projectId: string,
    computeId: string,
    record: ComputeRecord,
    lease: Lease,
    also?: { outbox?: readonly OutboxEntry[] } & Also,
  ): Promise<boolean>;
  /**
   * Stores a record with a pending write, and prolongs the lease to `ttlMs` from now. One atomic step, and only if the lease is still
   * held and holds, freezes and the policy set are still those of the decision: a later change of one of
   * them finds the pending write in {@link RecordStore.pendingWrites}.
   */
  putIntent(
    projectId: string,
    computeId: string,
    record: ComputeRecord,
    lease: Lease,
    given: { ttlMs: number; decidedBy: DecidedBy },
  ): Promise<IntentOutcome>;
  /** All records with a pending write, of one project or of all, in no order. */
  pendingWrites(projectId?: string): Promise<PendingWrite[]>;
  /** Forgets a compute that no longer exists, its samples too, under the same condition. */
  deleteRecord(projectId: string, computeId: string, lease: Lease): Promise<boolean>;
  /** Ids of the projects that have records, which a restart must reconcile. */
  projectIds(): Promise<string[]>;
}

/** Holds and freezes that nobody has ended. */
export interface StoredOverrides {
  readonly holds: readonly Hold[];
  readonly freezes: readonly Freeze[];
}

/** Holds and freezes as a store has them. */
export interface OverridesInStore {
  holds: Stored<Hold>;
  freezes: Stored<Freeze>;
  /** Changes whenever any of them is set or ended; an expiry changes nothing. */
  revision: string;
}

/** The stored overrides of a kind, and those ended early by people: one that is in neither was lost. Both of one instant. */
export interface Stored<Entry> {
  entries: readonly Entry[];
  endedIds: ReadonlySet<string>;
}

/**
 * Holds and freezes: oldest first, without those that have expired at `nowMs`. Asking again is cheap while nothing changed, so it may be
 * done before each write.
 */
export interface OverrideStore {
  holds(nowMs: number): Promise<Hold[]>;
  /** Holds and freezes, with the ids of those that were deleted before their expiry. */
  overrides(nowMs: number): Promise<OverridesInStore>;
  /**
   * Adds a hold or replaces the one with its id. Holds that expired before its `createdAtMs` make room. A deleted hold stays deleted:
   * storing it again, by a daemon that does not know of that, does nothing.
   */
  putHold(hold: Hold, also?: Also): Promise<PutOutcome>;
  /** False if there was none: then nothing else is stored either. */
  deleteHold(id: string, also?: Also): Promise<boolean>;
  /** A freeze that this version can't read counts as one of everything. */
  freezes(nowMs: number): Promise<Freeze[]>;
  /** As {@link OverrideStore.putHold}. */
  putFreeze(freeze: Freeze, also?: Also): Promise<PutOutcome>;
  deleteFreeze(id: string, also?: Also): Promise<boolean>;
  /** Remembers that a set may become current; of the oldest, beyond a hundred, nothing is remembered. */
  approve(approval: Approval, also?: Also): Promise<void>;
  /** Newest first. */
  approvals(): Promise<Approval[]>;
}

interface GenerationStore {
  /**
   * Registers the identity of a daemon's decisions with a new and greater number, and returns the generation that is then current: another
   * daemon's where it was not registered. A current identity keeps its number. One of a higher `decisionVersion` stays, unless `over` is
   * its number; with `over`, nothing is registered if the current number is another one.
   */
  raiseGeneration(own: DecisionIdentity, over?: number): Promise<Generation>;
  /** Restores a daemon's known generation into a store that came back empty or older; a greater one stays. Returns the current one. */
  restoreGeneration(known: Generation): Promise<Generation>;
  /** The current one. A daemon whose own number is smaller must not write. Undefined in an empty store. */
  generation(): Promise<Generation | undefined>;
}

export interface SlotRequest {
  policy: string;
  computeId: string;
  /** The number of computes that may hold a slot of the policy at once. */
  allowed: number;
  nowMs: number;
  /** The expiry of a slot that nobody releases. */
  untilMs: number;
}

/** Slots for disturbing computes: limits those of a policy at once over all daemons. Instants are those of the clock port. */
interface SlotStore {
  /**
   * True if the compute now holds a slot of the policy. One that held it already keeps it, until the new `untilMs`, also if
   * fewer are allowed by now.
   */
  takeSlot(request: SlotRequest): Promise<boolean>;
  /** Does nothing if it holds none. */
  releaseSlot(policy: string, computeId: string): Promise<void>;
  /** Ids of the computes that hold a slot, sorted. */
  slotsInUse(policy: string, nowMs: number): Promise<string[]>;
}

/** A query of the audit, with the start of its page. */
export interface AuditQuery {
  computeId?: string | undefined;
  /** Milliseconds since the epoch, both included. */
  sinceMs: number;
  untilMs: number;
  limit: number;
  /** The `next` of the page before. */
  after?: string | undefined;
}

interface HistoryStore {
  /**
   * The history keeps the last 200 entries of each compute, for 90 days, and some 50,000 in all. The audit keeps a year on Postgres, 30
   * days on Redis, and the newest 50,000 entries of a year on an embedded store. An entry above 1 KB loses words.
   */
  appendHistory(entries: readonly HistoryEntry[]): Promise<void>;
  /** Newest first; `next` is absent on the last page. Nothing of the audit is ever changed. */
  audit(query: AuditQuery): Promise<{ entries: HistoryEntry[]; next?: string }>;
  /** Newest first, `limit` at most: of one compute, or of the fleet. Includes the audit unless `withoutAudit`. */
  history(query: { computeId?: string; limit: number; withoutAudit?: true }): Promise<HistoryEntry[]>;
  /** Replaces the samples of a compute; the newest 32 stay. */
  putSamples(computeId: string, samples: readonly ConnectionSample[]): Promise<void>;
  /** Oldest first. */
  samples(computeId: string): Promise<ConnectionSample[]>;
}

/** Usage and operations as bytes that only the writer interprets: a unit of usage is at most 3 KB, one of operations seldom above 60 KB. */
export interface UsageStore {
  /** All accounts of which something is kept, sorted. */
  usageAccounts(): Promise<string[]>;
  /** Names of the units that are kept of an account, sorted. */
  usageUnits(account: string): Promise<string[]>;
  /** Those of the units that are kept. */
  usage(account: string, units: readonly string[]): Promise<Map<string, Uint8Array>>;
  /** Replaces the stored usage of these units. */
  putUsage(account: string, usage: ReadonlyMap<string, Uint8Array>): Promise<void>;
  deleteUsage(account: string, units: readonly string[]): Promise<void>;
}

/** Small documents that the daemons of a group share, by collection and name: text that only the writer interprets. */
export interface DocumentStore {
  /** All of a collection, by name. */
  documents(collection: string): Promise<Map<string, string>>;
  document(collection: string, name: string): Promise<string | undefined>;
  putDocument(collection: string, name: string, text: string): Promise<void>;
  /** Stores it in one step if the document is still as it was read, undefined if there was none; else false, and nothing written. */
  replaceDocument(
    collection: string,
    name: string,
    change: { was: string | undefined; text: string },
  ): Promise<boolean>;
  deleteDocuments(collection: string, names: readonly string[]): Promise<void>;
}

/** The state that must outlive a daemon. Everything in it is bounded; no secret is ever stored. */
export interface Store
  extends LeaseStore,
    RecordStore,
    OverrideStore,
    GenerationStore,
    SlotStore,
    HistoryStore,
    OutboxStore,
    UsageStore,
    DocumentStore {
  /** A random id made when the store was first used: another id means that the store came back empty. */
  storeId(): Promise<string>;
  /** The group's time, milliseconds since the epoch: Redis' own clock, so that several daemons agree. */
  timeMs(): Promise<number>;
  close(): Promise<void>;
}

/** One line of a dump of a store. Entries of history and audit are oldest first. */
export type Dumped =
  | { kind: 'hold'; hold: Hold }
  | { kind: 'freeze'; freeze: Freeze }
  | { kind: 'record'; projectId: string; computeId: string; record: ComputeRecord }
  /** The usage of a unit of an organization, as the store keeps it, in base64. */
  | { kind: 'usage'; account: string; unit: string; bytes: string }
  | { kind: 'history'; entry: HistoryEntry };
