/** Finds out whether a restart was announced to the receivers of notifications, and whether it comes later than announced. */
import pLimit from 'p-limit';
import { type Compute, type FieldGroup, groupOf } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { leadOf } from '../../domain/notifications/coming-change.ts';
import type { Action } from '../../domain/plan/plan.ts';
import { describeLevel } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord, Intent, LateChange, RestartCause } from '../../domain/records/compute-record.ts';
import { HOUR_MS, isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import { type Announced, announcedInstant, announcementOf, EARLY_MS, KEPT_MS } from '../notifications/sent-digests.ts';
import type { Slots } from '../operations/restart-slots.ts';
import type { KnownOverrides } from '../overrides.ts';
import { CONTROL_API, concernsAccount, controlApiFor, type OutageDeps } from '../telemetry/outages.ts';
import type { AuditDeps } from './audit.ts';

/** A restart is late if it comes later than this after the announced instant, in milliseconds. */
const LATE_MS = 2 * MINUTE_MS;

export interface ToldBeforeDeps extends AuditDeps, OutageDeps {
  api: ControlApi;
  store: Pick<Store, 'documents' | 'records'>;
  clock: Clock;
  fleet: Pick<Fleet, 'cachedProject' | 'latestEvaluation' | 'heldSpans'>;
  overrides: KnownOverrides;
  slots: Pick<Slots, 'limitBetween'>;
  /** Absent for a command. */
  storeWatch?: Pick<StoreWatch, 'lostAtMs'>;
  /** When this daemon started, milliseconds since the epoch; absent for a command. */
  startedAtMs?: number;
}

type Subject = Pick<EvaluatedCompute, 'compute' | 'record'>;

/** Why a change restarts its compute; empty if it does not. */
export interface RestartReason {
  cause?: RestartCause;
  /** What made the restart due, where more than the cause is known. */
  why?: string;
  /** The instants at which people approved the policy set that made the restart due, milliseconds since the epoch; absent if no set did. */
  approvedAtMs?: readonly number[] | undefined;
}

interface DueRestart extends RestartReason {
  /** Returns since when the change has been due, milliseconds since the epoch; see `changeDueSince`. */
  dueSinceMs(): number | undefined;
}

/**
 * Returns the fields of a pending write that say that its restart is unannounced or late, and which receivers' digests have counted it. Returns
 * no fields if there are no receivers, or if the restart's policy does not announce its boundaries.
 */
export async function announcementOfRestart(
  deps: ToldBeforeDeps,
  { compute, record }: Subject,
  action: Action,
  { cause, why, approvedAtMs, dueSinceMs }: DueRestart,
): Promise<Pick<Intent, 'unannounced' | 'unannouncedWhy' | 'announcementsLostAtMs' | 'announcedTo' | 'late'>> {
  const { notify, policies } = deps.rules.current;
  if (cause === undefined || notify.receivers.length === 0) return {};
  const policy = policies.set.policies.find(({ name }) => name === action.policy);
  if (cause === 'boundary' && leadOf(policy, notify.beforeMs) === undefined) return {};
  const nowMs = deps.clock.now();
  // An old announcement may be about another change. Only an announced boundary stays valid, however late its change is applied.
  const oldestMs = cause === 'boundary' ? 0 : nowMs - HOUR_MS;
  const lastChangeMs = lastChangeAtMs(record, groupOf(action.fields));
  const lastMs = Math.max(lastChangeMs, fulfilledUntilMs(record, action));
  const announced = await announcementOf(deps.store, {
    computeId: compute.computeId,
    raises: action.fields.maxCu === undefined ? undefined : action.raises,
    sinceMs: Math.max(lastMs, oldestMs),
    nowMs,
    ...(approvedAtMs !== undefined && { approval: { atMs: approvedAtMs, sinceMs: lastMs } }),
    // A daemon that does not know the compute's wave may make the announced change early.
    ...(cause === 'boundary' && { aheadMs: EARLY_MS }),
  });
  if (!announced || isAnotherRestart(announced, nowMs, dueSinceMs))
    return unannounced(deps, deps.caller ? 'person' : cause, { why, sinceMs: Math.max(lastChangeMs, oldestMs) });
  // A hold or restore asked for another change than the announced one.
  if (cause === 'person') return {};
  const isOwnCause = cause === 'boundary' || approvedAtMs?.includes(announced.slotMs) === true;
  const counted = announcedToOf(announced, isOwnCause, nowMs);
  // This compute's restart was announced only for the case that it is awake. A message about each such delay would be noise.
  if (!announced.ownIds.includes(compute.computeId)) return counted;
  return { ...counted, ...(await lateOf(deps, { compute, record }, { announced, action, nowMs })) };
}

/**
 * Returns the receivers that need no second message, since their announcement counted the restart. Long after the announced instant, a
 * restart for another cause counts as another change, which was not announced.
 */
function announcedToOf(
  { countedFor, atMs = 0 }: Announced,
  isOwnCause: boolean,
  nowMs: number,
): Pick<Intent, 'announcedTo'> {
  return countedFor.length > 0 && (isOwnCause || nowMs <= atMs + LATE_MS) ? { announcedTo: countedFor } : {};
}

/** Returns when the compute was last restarted, or the group of fields changed, milliseconds since the epoch; 0 if never. */
function lastChangeAtMs({ lastDisruption, lastChanges }: ComputeRecord, group: FieldGroup): number {
  return Math.max(lastDisruption?.atMs ?? 0, lastChanges?.[group]?.answeredAtMs ?? 0);
}

/** Returns the instant up to which the last restart in this direction fulfils announcements, since it may come early; 0 without such a restart. */
function fulfilledUntilMs({ lastDisruption }: ComputeRecord, { raises }: Pick<Action, 'raises'>): number {
  return lastDisruption && lastDisruption.lowered !== raises ? lastDisruption.atMs + EARLY_MS : 0;
}

/**
 * Returns true if a boundary after the announced slot has made the restart due: then it is not the announced restart. The slot counts up to
 * its last instant, since a wave may move within it.
 */
function isAnotherRestart({ atMs }: Announced, nowMs: number, dueSinceMs: DueRestart['dueSinceMs']): boolean {
  // Before that instant there can be no such boundary, so none is searched for.
  if (atMs === undefined || nowMs - atMs <= LATE_MS) return false;
  return (dueSinceMs() ?? 0) > atMs + LATE_MS;
}

function unannounced(
  { storeWatch, clock }: ToldBeforeDeps,
  cause: RestartCause,
  { why, sinceMs }: { why: string | undefined; sinceMs: number },
): Pick<Intent, 'unannounced' | 'unannouncedWhy' | 'announcementsLostAtMs'> {
  const fields = why === undefined ? { unannounced: cause } : { unannounced: 'other' as const, unannouncedWhy: why };
  // The announcement may have been lost with the store's data: only the daemon that sent it could write it back.
  const lostAtMs = cause === 'person' ? undefined : storeWatch?.lostAtMs();
  const mayBeLost = lostAtMs !== undefined && lostAtMs >= Math.max(sinceMs, clock.now() - HOUR_MS);
  return mayBeLost ? { ...fields, announcementsLostAtMs: lostAtMs } : fields;
}

/** Returns the report of a restart that comes later than announced; no field if it is in time, or only delayed by limits on restarts. */
async function lateOf(
  deps: ToldBeforeDeps,
  { compute, record }: Subject,
  { announced, action, nowMs }: { announced: Announced; action: Action; nowMs: number },
): Promise<Pick<Intent, 'late'>> {
  const { owner, ownIds } = announced;
  const atMs = announcedInstant(announced, compute.computeId);
  if (announced.atMs === undefined || nowMs - atMs <= LATE_MS) return {};
  // A failure, or a wait for the platform, is reported even where a limit spreads the other changes.
  const trouble = deps.caller
    ? undefined
    : (troubleSince(deps, { compute, record }, atMs) ?? platformWait(deps, compute, atMs));
  const isByLimit = () => isDelayedByLimit(deps, { ...announced, atMs }, { compute, policy: action.policy });
  if (trouble === undefined && isByLimit()) return {};
  const why = deps.caller ? 'a person has applied it' : (trouble ?? otherDelay(deps, compute, atMs));
  const counts = { restarts: ownIds.length, ...(await remainingOf(deps, announced, action)) };
  return {
    late: {
      owner,
      slotMs: announced.slotMs,
      ...announcedSpan(announced),
      ...counts,
      ...(why !== undefined && { why }),
    },
  };
}

/** Returns the first and, if it differs, the last announced instant of the owner's restarts. */
function announcedSpan(announced: Announced): Pick<LateChange, 'announcedAtMs' | 'announcedToMs'> {
  const instants = announced.ownIds.map((computeId) => announcedInstant(announced, computeId));
  const announcedAtMs = Math.min(...instants);
  const announcedToMs = Math.max(...instants);
  return announcedToMs > announcedAtMs ? { announcedAtMs, announcedToMs } : { announcedAtMs };
}

/** Projects whose records are read concurrently. */
const CONCURRENT_READS = 8;

/** The counts of {@link remainingOf}, by owner and slot. Kept for {@link KEPT_MS}: one message tells all late restarts of a slot. */
const remainingCounts = new WeakMap<ToldBeforeDeps['store'], RemainingCounts>();
type RemainingCounts = Map<string, { slotMs: number; count: Promise<number> }>;

/**
 * Returns how many of the owner's announced computes, at most, are not restarted yet; no field if this daemon does not know all of them. A
 * restart before the announced instant does not count, since it may belong to an earlier change.
 */
async function remainingOf(
  { fleet, store, clock }: Pick<ToldBeforeDeps, 'fleet' | 'store' | 'clock'>,
  announced: Announced,
  action: Action,
): Promise<Pick<LateChange, 'left'>> {
  const { owner, ownIds, slotMs } = announced;
  const evaluated = ownIds.flatMap((computeId) => fleet.latestEvaluation(computeId) ?? []);
  if (evaluated.length < ownIds.length) return {};
  // While the size waits for a limit, the timeout is changed alone, which restarts nothing.
  const lastMs = (record: ComputeRecord) => Math.max(lastChangeAtMs(record, 'size'), fulfilledUntilMs(record, action));
  const isLeft = ({ compute: { computeId }, record }: Subject) =>
    lastMs(record) < announcedInstant(announced, computeId);
  const counts: RemainingCounts = remainingCounts.get(store) ?? new Map();
  remainingCounts.set(store, counts);
  for (const [key, one] of counts) if (one.slotMs + KEPT_MS < clock.now()) counts.delete(key);
  const key = JSON.stringify([owner, slotMs]);
  const { count } = counts.get(key) ?? { count: countAsStored(store, evaluated.filter(isLeft), isLeft) };
  counts.set(key, { slotMs, count });
  // After a failure, the next call counts again.
  count.catch(() => counts.delete(key));
  return { left: await count };
}

/** Counts the computes that, by the stored records, are not restarted yet: other daemons may have restarted some since they were read here. */
async function countAsStored(
  store: ToldBeforeDeps['store'],
  left: readonly Subject[],
  isLeft: (subject: Subject) => boolean,
): Promise<number> {
  const projectIds = new Set(left.map(({ compute }) => compute.projectId));
  const records = await pLimit(CONCURRENT_READS).map(projectIds, (projectId) => store.records(projectId));
  const stored = new Map(records.flatMap((ofProject) => [...ofProject]));
  return left.filter(({ compute, record }) => isLeft({ compute, record: stored.get(compute.computeId) ?? record }))
    .length;
}

/**
 * Returns true if only a limit on restarts delays this restart, which is not reported. A command, or a daemon that asked for no slot at that
 * time, has not seen whether the limit was reached. It assumes so if other announced computes of the account were restarted in time.
 */
function isDelayedByLimit(
  { caller, fleet, slots }: ToldBeforeDeps,
  { slotMs, restartIds, atMs }: Announced & { atMs: number },
  { compute, policy }: { compute: Compute; policy: string },
): boolean {
  const inTimeMs = atMs + LATE_MS;
  const limit = caller ? 'unseen' : slots.limitBetween(policy, slotMs, inTimeMs);
  if (limit !== 'unseen') return limit === 'reached';
  return restartIds.some((computeId) => {
    const other = fleet.latestEvaluation(computeId);
    const restartedMs = other?.compute.account === compute.account ? other.record.lastDisruption?.atMs : undefined;
    return restartedMs !== undefined && restartedMs >= slotMs && restartedMs <= inTimeMs;
  });
}

/**
 * Returns what has failed, been unavailable, or been frozen by a person since the announced instant, milliseconds since the epoch: what came before
 * the end of a freeze no longer delays. A present outage counts too: it ends only with an answer to this daemon, perhaps the one to this write.
 */
function troubleSince(
  deps: ToldBeforeDeps,
  { compute, record: { failures = {} } }: Subject,
  announcedAtMs: number,
): string | undefined {
  const { account } = compute;
  const thaw = deps.overrides.lastThawOf(compute);
  const sinceMs = Math.max(announcedAtMs, thaw?.atMs ?? 0);
  const failed = Object.values(failures).find(({ lastAtMs }) => lastAtMs >= sinceMs);
  if (failed) return `it had failed: ${failed.message}`;
  const keyTrouble = keyTroubleSince(deps, account, sinceMs);
  if (keyTrouble !== undefined) return keyTrouble;
  for (const name of [CONTROL_API, controlApiFor(account)]) {
    const cause = deps.outages.current().get(name);
    if (cause !== undefined) return `${name} was not available: ${cause}`;
  }
  for (const [name, { atMs, message }] of deps.outages.ended()) {
    if (atMs <= sinceMs || !concernsAccount(name, account)) continue;
    return `${name} was not available until ${isoInstant(atMs)}: ${message}`;
  }
  return thaw && thaw.atMs > announcedAtMs ? thaw.message : undefined;
}

/**
 * Returns what the compute waited for on the platform's side when it became late, if it had waited for a minute. A shorter wait is usually
 * caused by a limit: another compute of the project restarts, and this one is next.
 */
function platformWait({ fleet }: ToldBeforeDeps, { computeId }: Compute, announcedAtMs: number): string | undefined {
  const span = fleet.heldSpans.get(computeId);
  const lateAtMs = announcedAtMs + LATE_MS;
  if (!span || span.sinceMs > lateAtMs - MINUTE_MS || span.untilMs < lateAtMs) return undefined;
  return `still at ${isoInstant(span.untilMs)}, ${span.message}`;
}

/** Returns the account's trouble with its API key, if it lasted until after `sinceMs`. It blocks writes like an outage. */
function keyTroubleSince({ api, clock }: ToldBeforeDeps, account: string, sinceMs: number): string | undefined {
  const trouble = api.accountStatus().find((status) => status.account === account)?.keyTrouble;
  if (!trouble) return undefined;
  const { state, endedAgoMs } = trouble;
  const was = `the API key of account ${account} was ${state}`;
  if (endedAgoMs === undefined) return was;
  const endedAtMs = clock.now() - endedAgoMs;
  return endedAtMs > sinceMs ? `${was} until ${isoInstant(endedAtMs)}` : undefined;
}

/** Returns what else may have delayed a change: the daemon started after the announced instant, or the rate limit is lower. */
function otherDelay(
  { api, startedAtMs = 0 }: ToldBeforeDeps,
  compute: Compute,
  announcedAtMs: number,
): string | undefined {
  if (startedAtMs > announcedAtMs) return `the daemon was started at ${isoInstant(startedAtMs)}`;
  const limit = api.accountStatus().find(({ account }) => account === compute.account)?.limit;
  return limit && `less of the rate limit is used after answers 429: ${describeLevel(limit.level)}`;
}
