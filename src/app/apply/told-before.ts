/** What people who asked for notifications don't know of a restart: that it comes, or that it comes later than announced. */
import { type Compute, groupOf } from '../../domain/compute/compute.ts';
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
import { type Announced, announcementOf } from '../notifications/sent-digests.ts';
import type { Slots } from '../operations/restart-slots.ts';
import { CONTROL_API, concernsAccount, controlApiFor, type OutageDeps } from '../telemetry/outages.ts';
import type { AuditDeps } from './audit.ts';

/** A restart is told again if it comes later than this after the instant that was announced, in milliseconds. */
const LATE_MS = 2 * MINUTE_MS;

export interface ToldBeforeDeps extends AuditDeps, OutageDeps {
  api: ControlApi;
  store: Pick<Store, 'documents'>;
  clock: Clock;
  fleet: Pick<Fleet, 'cachedProject' | 'latestEvaluation'>;
  slots: Pick<Slots, 'limitBetween'>;
  /** Absent for a command. */
  storeWatch?: Pick<StoreWatch, 'lostAtMs'>;
  /** When this daemon started, milliseconds since the epoch; absent for a command. */
  startedAtMs?: number;
}

/** What was announced with a restart, and for when. */
type Begun = Announced & { atMs: number };

type Subject = Pick<EvaluatedCompute, 'compute' | 'record'>;

/**
 * Returns the fields of a pending write that say so; none if people were told in time, or nobody wants to be told. `whyOf` returns what made the
 * restart due, where more than the cause is known.
 */
export async function untoldOf(
  deps: ToldBeforeDeps,
  { compute, record }: Subject,
  action: Action,
  { cause, whyOf }: { cause: RestartCause | undefined; whyOf: () => string | undefined },
): Promise<Pick<Intent, 'unannounced' | 'unannouncedWhy' | 'announcementsLostAtMs' | 'late'>> {
  const { notify, policies } = deps.rules.current;
  if (cause === undefined || notify.receivers.length === 0) return {};
  const policy = policies.set.policies.find(({ name }) => name === action.policy);
  if (cause === 'boundary' && leadOf(policy, notify.beforeMs) === undefined) return {};
  const changedAtMs = record.lastChanges?.[groupOf(action.fields)]?.answeredAtMs ?? 0;
  const nowMs = deps.clock.now();
  // Long after a slot, only its boundary is still what was announced.
  const oldestMs = cause === 'boundary' ? 0 : nowMs - HOUR_MS;
  const sinceMs = Math.max(record.lastDisruption?.atMs ?? 0, changedAtMs, oldestMs);
  const announced = await announcementOf(deps.store, { computeId: compute.computeId, sinceMs, nowMs });
  if (!announced) return unannounced(deps, deps.caller ? 'person' : cause, { why: whyOf(), sinceMs });
  // A change that a person asks for is another one than the announced.
  if (cause === 'person') return {};
  return lateOf(deps, { compute, record }, { announced, policy: action.policy, nowMs });
}

function unannounced(
  { storeWatch, clock }: ToldBeforeDeps,
  cause: RestartCause,
  { why, sinceMs }: { why: string | undefined; sinceMs: number },
): Pick<Intent, 'unannounced' | 'unannouncedWhy' | 'announcementsLostAtMs'> {
  const of = why === undefined ? { unannounced: cause } : { unannounced: 'other' as const, unannouncedWhy: why };
  // A daemon may have announced it that was gone when the store lost its data.
  const lostAtMs = cause === 'person' ? undefined : storeWatch?.lostAtMs();
  const mayBeLost = lostAtMs !== undefined && lostAtMs >= Math.max(sinceMs, clock.now() - HOUR_MS);
  return mayBeLost ? { ...of, announcementsLostAtMs: lostAtMs } : of;
}

/** Returns what is told of a restart that comes later than it was announced; nothing where limits on restarts explain that. */
function lateOf(
  deps: ToldBeforeDeps,
  { compute, record }: Subject,
  { announced, policy, nowMs }: { announced: Announced; policy: string; nowMs: number },
): Pick<Intent, 'late'> {
  const { owner, ownIds, atMs } = announced;
  if (atMs === undefined || nowMs - atMs <= LATE_MS) return {};
  // A failure is news even where a limit spreads the other changes.
  const trouble = deps.caller ? undefined : troubleSince(deps, { compute, record }, atMs);
  if (trouble === undefined && isSpread(deps, { ...announced, atMs }, { compute, policy })) return {};
  const why = deps.caller ? 'a person has applied it' : (trouble ?? startOrRate(deps, compute, atMs));
  const counts = { restarts: ownIds.length, ...leftOf(deps, { ...announced, atMs }) };
  return { late: { owner, announcedAtMs: atMs, ...counts, ...(why !== undefined && { why }) } };
}

/**
 * At most how many of the owner's computes are not restarted yet; empty where this daemon does not know all of them. A slot may have begun
 * before an earlier change, so only the announced instant counts.
 */
function leftOf({ fleet }: Pick<ToldBeforeDeps, 'fleet'>, { ownIds, atMs }: Begun): Pick<LateChange, 'left'> {
  const known = ownIds.flatMap((computeId) => fleet.latestEvaluation(computeId)?.record ?? []);
  if (known.length < ownIds.length) return {};
  // While the size waits for a limit, the timeout is changed alone, which restarts nothing.
  const changedMs = ({ lastDisruption, lastChanges }: ComputeRecord) =>
    Math.max(lastDisruption?.atMs ?? 0, lastChanges?.size?.answeredAtMs ?? 0);
  return { left: known.filter((record) => changedMs(record) < atMs).length };
}

/**
 * Returns true if only limits on restarts have spread what was announced, which is no news. A command, or a daemon that asked for no slot
 * at that time, has not seen whether a limit was reached. There it is no news if others restarted in time.
 */
function isSpread(
  { caller, fleet, slots }: ToldBeforeDeps,
  { slotMs, restartIds, atMs }: Begun,
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
 * Returns what is known to have failed or been away since an instant, milliseconds since the epoch. An outage goes on until this daemon
 * itself gets an answer, which may be the one to the write.
 */
function troubleSince(
  { outages }: ToldBeforeDeps,
  { compute: { account }, record: { failures = {} } }: Subject,
  sinceMs: number,
): string | undefined {
  const [failed] = Object.values(failures).filter(({ lastAtMs }) => lastAtMs >= sinceMs);
  if (failed) return `it had failed: ${failed.message}`;
  for (const name of [CONTROL_API, controlApiFor(account)]) {
    const away = outages.current().get(name);
    if (away !== undefined) return `${name} was not available: ${away}`;
  }
  const [outage] = [...outages.ended()].filter(([name, { atMs }]) => atMs > sinceMs && concernsAccount(name, account));
  return outage && `${outage[0]} was not available until ${isoInstant(outage[1].atMs)}: ${outage[1].message}`;
}

/** Returns what else may have kept a change from being made at that instant, milliseconds since the epoch. */
function startOrRate(
  { api, startedAtMs = 0 }: ToldBeforeDeps,
  compute: Compute,
  announcedAtMs: number,
): string | undefined {
  if (startedAtMs > announcedAtMs) return `the daemon was started at ${isoInstant(startedAtMs)}`;
  const limit = api.accountStatus().find(({ account }) => account === compute.account)?.limit;
  return limit && `less of the rate limit is used after answers 429: ${describeLevel(limit.level)}`;
}
