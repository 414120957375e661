import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { HistoryEntry } from '../domain/records/history.ts';
import type { OutboxEntry, OutboxStore } from './outbox.ts';

/** A lock with an expiry in real time. The fencing token grows with each holder, so that a holder that slept past the expiry is recognized. */
export interface Lease {
  name: string;
  holder: string;
  token: number;
}

/** Identifies the rules of a daemon. A daemon of 0.1.0 knows only the hash of its policies. */
export interface DecisionIdentity {
  /** The hash of the policies, which approvals, history and messages name. */
  setHash: string;
  /** The hash of policies, settings and engine: daemons with the same one decide alike. */
  decisionHash?: string;
  /** The version of the engine. */
  decisionVersion?: number;
}

/** The current identity of a group. The number grows with each change of it, even across a store that came back empty. */
export interface Generation extends DecisionIdentity {
  number: number;
}

/** A person's approval of a staged policy set. */
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
  /** For the highest of several counts: the instant of the first. */
  sinceMs?: number;
  /** When Postgres counted, milliseconds since the epoch: before `atMs` if an earlier count of zero still holds, as nobody has connected. */
  countedAtMs?: number;
  /** Name of the source. */
  source?: string;
}

/** The inputs of a decision that other daemons or people may change at any moment. */
export interface DecidedBy {
  /** The revision of holds and freezes, as {@link OverrideStore.overrides} gave it. */
  overrides: string;
  /** The generation, or `any` where the decision is not by a registered set (`ebb apply`). */
  generation: number | 'any';
}

/** `outdated`: a hold, a freeze or the policy set has changed since the decision, so nothing was stored. */
export type IntentOutcome = 'stored' | 'lease_lost' | 'outdated';

/** The record of a compute, with its ids. */
export interface LocatedRecord {
  projectId: string;
  computeId: string;
  record: ComputeRecord;
}

/** `full`: the store has reached its limit; some must be deleted or expire first. */
export type PutOutcome = { ok: true } | { ok: false; error: { code: 'full'; limit: number } };

/** An audit entry that is stored atomically with the main entry. */
export interface WithAudit {
  /** One of {@link AUDIT_KINDS}. */
  audit?: HistoryEntry;
}

interface LeaseStore {
  /** Undefined while the lease is held, even by this holder: two jobs of one daemon exclude each other, too. `ttlMs` is real time. */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Prolongs a lease to `ttlMs` from now; false if the lease is no longer held. */
  renewLease(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Does nothing if the lease is no longer held. */
  releaseLease(lease: Lease): Promise<void>;
}

export interface RecordStore {
  /** By compute id, without those that this version can't parse. */
  records(projectId: string): Promise<Map<string, ComputeRecord>>;
  /** Project by compute id of records that could not be parsed when last read. Such a compute must not be changed. */
  brokenRecords(): Promise<ReadonlyMap<string, string>>;
  /** Stores a record, and atomically `also`, if the lease is still held; else false, and nothing is written. */
  putRecord(
    projectId: string,
    computeId: string,
    record: ComputeRecord,
    lease: Lease,
    also?: { outbox?: readonly OutboxEntry[] } & WithAudit,
  ): Promise<boolean>;
  /**
   * Stores a record with a pending write, and prolongs the lease to `ttlMs` from now, in one atomic step. Nothing is stored if the lease was
   * lost, or if holds, freezes or the policy set have changed since the decision. Whoever changes these later finds the pending write in
   * {@link RecordStore.pendingWrites}.
   */
  putIntent(
    projectId: string,
    computeId: string,
    record: ComputeRecord,
    lease: Lease,
    conditions: { ttlMs: number; decidedBy: DecidedBy },
  ): Promise<IntentOutcome>;
  /** Records with a pending write, of one project or all, unordered. Their requests may be in flight, or the answers were lost. */
  pendingWrites(projectId?: string): Promise<LocatedRecord[]>;
  /** Deletes the record and samples of a compute if the lease is still held; else false, and nothing is deleted. */
  deleteRecord(projectId: string, computeId: string, lease: Lease): Promise<boolean>;
  /** Ids of the projects that have records. */
  projectIds(): Promise<string[]>;
}

/** Holds and freezes that were not ended early. */
export interface StoredOverrides {
  readonly holds: readonly Hold[];
  readonly freezes: readonly Freeze[];
}

export interface OverridesInStore {
  holds: Stored<Hold>;
  freezes: Stored<Freeze>;
  /** Changes whenever a hold or freeze is set or ended; an expiry changes nothing. */
  revision: string;
}

/** A consistent reading of the overrides of a kind. An override that is neither an entry nor ended was lost. */
export interface Stored<Entry> {
  entries: readonly Entry[];
  /** Ended early by people. */
  endedIds: ReadonlySet<string>;
}

/**
 * Holds and freezes, oldest first, without those that have expired at `nowMs`. Reading them is cheap while nothing has changed, so it may
 * be done before each write.
 */
export interface OverrideStore {
  holds(nowMs: number): Promise<Hold[]>;
  overrides(nowMs: number): Promise<OverridesInStore>;
  /**
   * Adds a hold, or replaces the hold with its id. Holds that expired before its `createdAtMs` are removed first. A deleted hold stays
   * deleted, so that a daemon that missed the deletion can't bring it back.
   */
  putHold(hold: Hold, also?: WithAudit): Promise<PutOutcome>;
  /** False if there was none; then `also` is not stored. */
  deleteHold(id: string, also?: WithAudit): Promise<boolean>;
  /** A freeze that this version can't parse counts as one of everything. */
  freezes(nowMs: number): Promise<Freeze[]>;
  /** Like {@link OverrideStore.putHold}. */
  putFreeze(freeze: Freeze, also?: WithAudit): Promise<PutOutcome>;
  deleteFreeze(id: string, also?: WithAudit): Promise<boolean>;
  /** Keeps the newest hundred. */
  approve(approval: Approval, also?: WithAudit): Promise<void>;
  /** Newest first. */
  approvals(): Promise<Approval[]>;
}

export interface GenerationStore {
  /**
   * Registers an identity under the next number, unless it is the current one, and returns the current generation. By default a current
   * generation with a higher `decisionVersion` stays. With `onlyReplacing`, any current generation stays that has another number.
   */
  raiseGeneration(identity: DecisionIdentity, onlyReplacing?: number): Promise<Generation>;
  /** Restores a generation into a store that came back empty or older; a higher number stays. Returns the current generation. */
  restoreGeneration(generation: Generation): Promise<Generation>;
  /** The current generation; undefined in an empty store. A daemon with a smaller number must not write. */
  generation(): Promise<Generation | undefined>;
}

export interface SlotRequest {
  policy: string;
  computeId: string;
  /** The number of computes that may hold a slot of the policy at once. */
  allowed: number;
  nowMs: number;
  /** The slot's expiry. */
  untilMs: number;
}

/** Slots limit the computes that a policy disturbs at once, over all daemons. Instants are those of the clock port. */
export interface SlotStore {
  /** True if the compute now holds a slot. A held slot is prolonged to the new `untilMs`, even if fewer are allowed by now. */
  takeSlot(request: SlotRequest): Promise<boolean>;
  /** Does nothing if the compute holds no slot. */
  releaseSlot(policy: string, computeId: string): Promise<void>;
  /** Ids of the computes that hold a slot, sorted. */
  slotsInUse(policy: string, nowMs: number): Promise<string[]>;
}

export interface AuditQuery {
  computeId?: string | undefined;
  /** Milliseconds since the epoch, both included. */
  sinceMs: number;
  untilMs: number;
  limit: number;
  /** The `next` of the page before. */
  after?: string | undefined;
}

export interface HistoryStore {
  /**
   * The history keeps the last 200 entries of each compute, for 90 days, and some 50,000 in all. The audit keeps a year on Postgres, 30 days
   * on Redis (in each of 64 streams the newest 50,000), and the newest 50,000 entries of a year on an embedded store. An entry above 1 KB is
   * shortened.
   */
  appendHistory(entries: readonly HistoryEntry[]): Promise<void>;
  /** Newest first; `next` is absent on the last page. Audit entries never change. */
  audit(query: AuditQuery): Promise<{ entries: HistoryEntry[]; next?: string }>;
  /** Newest first, `limit` at most: of one compute, or of the fleet. Includes the audit unless `withoutAudit`. */
  history(query: { computeId?: string; limit: number; withoutAudit?: true }): Promise<HistoryEntry[]>;
  /** Replaces the samples of a compute; the newest 32 stay. */
  putSamples(computeId: string, samples: readonly ConnectionSample[]): Promise<void>;
  /** Oldest first. */
  samples(computeId: string): Promise<ConnectionSample[]>;
}

/** Usage and operations as bytes that only the writer interprets: a unit of usage is at most 3 KB, one of operations rarely above 60 KB. */
export interface UsageStore {
  /** Sorted. */
  usageAccounts(): Promise<string[]>;
  /** Sorted. */
  usageUnits(account: string): Promise<string[]>;
  usage(account: string, units: readonly string[]): Promise<Map<string, Uint8Array>>;
  /** Replaces the stored usage of these units. */
  putUsage(account: string, usage: ReadonlyMap<string, Uint8Array>): Promise<void>;
  deleteUsage(account: string, units: readonly string[]): Promise<void>;
}

/** Small texts that the daemons of a group share; only the writer interprets them. */
export interface DocumentStore {
  /** By name. */
  documents(collection: string): Promise<Map<string, string>>;
  document(collection: string, name: string): Promise<string | undefined>;
  putDocument(collection: string, name: string, text: string): Promise<void>;
  /** Compare and set: false, and nothing written, if the document is not `was` (undefined: absent). */
  replaceDocument(
    collection: string,
    name: string,
    change: { was: string | undefined; text: string },
  ): Promise<boolean>;
  deleteDocuments(collection: string, names: readonly string[]): Promise<void>;
}

/** The state that outlives a daemon. Everything in it is bounded; no secret is ever stored. */
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
  /** A random id made when the store was first used: a different id means that the store came back empty. */
  storeId(): Promise<string>;
  /** The store clock, milliseconds since the epoch, which all daemons of a group share. */
  timeMs(): Promise<number>;
  close(): Promise<void>;
}

/** One line of a dump of a store. Entries of history and audit are oldest first. */
export type Dumped =
  | { kind: 'hold'; hold: Hold }
  | { kind: 'freeze'; freeze: Freeze }
  | { kind: 'record'; projectId: string; computeId: string; record: ComputeRecord }
  /** `bytes`: as stored, in base64. */
  | { kind: 'usage'; account: string; unit: string; bytes: string }
  | { kind: 'history'; entry: HistoryEntry };
