/** Finds the digests of coming changes that are due, and the changes of each. */
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { openingsWithoutWaves } from '../../domain/evaluate/ready-waves.ts';
import {
  type ComingChange,
  comingChanges,
  digestOfChanges,
  leadOf,
  longestLead,
} from '../../domain/notifications/coming-change.ts';
import { createFuture, type Future } from '../../domain/notifications/future.ts';
import { receiversOf } from '../../domain/notifications/notification.ts';
import { changeKind } from '../../domain/plan/plan.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { LONGEST_WAVE_LEAD_MS } from '../../domain/policy/waves.ts';
import { withoutLag } from '../../domain/records/lag.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { outboxEntry } from '../notifications/notify.ts';
import { type ObstacleDeps, obstacleTo } from '../notifications/obstacle.ts';
import {
  announcedInstant,
  digestAfter,
  digestId,
  digestKey,
  EARLY_MS,
  isSameDirection,
  type SentDigest,
  type SentDigests,
} from '../notifications/sent-digests.ts';
import { hasReadyWaves } from '../stored-waves.ts';
import type { IsGathered } from './gathering.ts';

/** Restarts of computes that have woken since a digest are told once, when this part of the lead is left: a later message misses fewer. */
const WOKEN_PART = 1 / 4;

interface ComingDeps extends EvaluateDeps, ObstacleDeps {
  fleet: Pick<Fleet, 'evaluatedComputes' | 'cachedProject'>;
}

type FutureOf = (evaluated: EvaluatedCompute) => Future;

/** Creates a function that returns the future of a compute, and computes each part of it once for each evaluation and policy set. */
export function createFutureCache(deps: EvaluateDeps): FutureOf {
  const cache = new WeakMap<EvaluatedCompute, { policies: CompiledPolicies; future: Future }>();
  return (evaluated) => {
    const { policies } = deps.rules.current;
    const before = cache.get(evaluated);
    if (before?.policies === policies) return before.future;
    const { compute, record } = evaluated;
    const future = createFuture(() => situationOf(deps, { compute, record, projectBusy: false }));
    cache.set(evaluated, { policies, future });
    return future;
  };
}

/**
 * Returns the digests of coming changes that are due and were not queued: one for each receiver, owner and slot, and later ones with only what
 * {@link newsOf} returns. The id of a digest depends on its computes, so that the outbox takes a later one for a new message.
 */
export function comingDigests(
  deps: ComingDeps,
  { futureOf, isGathered, sent }: { futureOf: FutureOf; isGathered: IsGathered; sent: SentDigests },
) {
  const { notify } = deps.rules.current;
  const nowMs = deps.clock.now();
  return [...groupComing(deps, futureOf, nowMs)].flatMap(([key, group]) => {
    const { receiver, owner } = group;
    const sentBefore = sent.get(key);
    const { news, leadOfNews, isWokenTold, isAgain } = newsOf(group, sentBefore, nowMs);
    const restarting = news
      .filter(({ action }) => action.disconnects)
      .map((one) => ({
        computeId: one.compute.computeId,
        leftMs: one.instantMs - nowMs,
        realLeftMs: deps.clock.realDelayMs(one.instantMs),
        leadMs: leadOfNews(one),
      }));
    const isDue = restarting.some(({ leftMs, leadMs }) => leftMs <= leadMs);
    const [first, ...others] = news;
    if (!first || !isDue || !isGathered(key, restarting)) return [];
    const obstacle = obstacleTo(
      deps,
      news.map(({ compute }) => compute),
    );
    const id = digestId(group, news, isAgain);
    const notification = digestOfChanges([first, ...others], { id, owner, nowMs, obstacle });
    const digest = { ...digestAfter(sentBefore, news, group.slotMs), ...(isWokenTold && { isWokenTold }) };
    const projectIds = news.map(({ compute }) => compute.projectId);
    return [{ key, entry: outboxEntry(notification, receiver, notify.statusUrl), digest, projectIds }];
  });
}

/**
 * Returns the changes of a group to tell now. These are changes of computes that no digest has named; further changes of computes that have
 * already made the named restart; restarts of computes that were to get only another timeout; restarts that raise what was to be lowered, or
 * the reverse, such as after a manual change; and, once and shortly before, restarts of computes that were listed as asleep and have woken since.
 */
function newsOf({ slotMs, changes, leadMsOf }: ComingGroup, sentBefore: SentDigest | undefined, nowMs: number) {
  const { computeIds = [], restartIds = [], timeoutIds = [], instants, isWokenTold } = sentBefore ?? {};
  const named = new Set(computeIds);
  const timeouts = new Set(timeoutIds);
  const restarts = new Set(restartIds);
  // Two waits of a compute may end in one slot.
  const isFurther = ({ compute: { computeId }, instantMs, restartedAtMs }: GroupedChange) =>
    restartedAtMs >= announcedInstant({ slotMs, instants }, computeId) - EARLY_MS &&
    instantMs > restartedAtMs + EARLY_MS;
  const isAgain = (change: GroupedChange) =>
    named.has(change.compute.computeId) && (isFurther(change) || isReversed(sentBefore, change));
  const isUntold = (change: GroupedChange) => {
    const { computeId } = change.compute;
    return !named.has(computeId) || (change.action.disconnects && timeouts.has(computeId)) || isAgain(change);
  };
  const woken = changes.filter(
    (one) => one.action.disconnects && !isUntold(one) && !restarts.has(one.compute.computeId),
  );
  const leadOfNews = (one: GroupedChange) => (leadMsOf(one) ?? 0) * (isUntold(one) ? 1 : WOKEN_PART);
  const isWokenDue = !isWokenTold && woken.some((one) => one.instantMs - nowMs <= leadOfNews(one));
  const untold = changes.filter(isUntold);
  return {
    news: isWokenDue ? [...untold, ...woken] : untold,
    leadOfNews,
    isAgain,
    isWokenTold: isWokenDue ? (true as const) : isWokenTold,
  };
}

function isReversed(sentBefore: SentDigest | undefined, { compute: { computeId }, action }: ComingChange): boolean {
  const kind = changeKind([action]);
  if (!sentBefore || !action.disconnects || (kind !== 'raise' && kind !== 'lower')) return false;
  return !isSameDirection(sentBefore, { computeId, raises: kind === 'raise' });
}

interface ComingGroup {
  receiver: string;
  owner: string;
  slotMs: number;
  changes: GroupedChange[];
  leadMsOf(change: ComingChange): number | undefined;
}

interface GroupedChange extends ComingChange {
  /** When the compute was last restarted, milliseconds since the epoch; 0 if it never was. */
  restartedAtMs: number;
}

/** Groups the changes within the longest lead by receiver, owner and slot. Changes by a policy without a lead are left out. */
function groupComing(deps: ComingDeps, futureOf: FutureOf, nowMs: number): Map<string, ComingGroup> {
  const { policies, notify, costs } = deps.rules.current;
  const policyOf = new Map(policies.set.policies.map((policy) => [policy.name, policy]));
  const leadMsOf = ({ action }: Pick<ComingChange, 'action'>) => leadOf(policyOf.get(action.policy), notify.beforeMs);
  const longestMs = longestLead(policies.set, notify.beforeMs);
  const groups = new Map<string, ComingGroup>();
  if (longestMs === 0) return groups;
  const all = [...deps.fleet.evaluatedComputes()].map((one) => withAppliedValues(deps, one));
  const ownerOf = computeOwners({ rules: costs.owners, policies, computes: all.map(({ compute }) => compute) });
  const { readyWaves } = policies;
  const mayMove = createMayMove(policies, { nowMs, toMs: nowMs + longestMs + LONGEST_WAVE_LEAD_MS });
  const span = { nowMs, untilMs: nowMs + longestMs };
  for (const evaluated of all) {
    for (const change of comingChanges(evaluated, futureOf(evaluated), { ...span, readyWaves })) {
      if (leadMsOf(change) === undefined || mayMove(change, policyOf.get(change.action.policy))) continue;
      const owner = ownerOf(change.compute);
      const receivers = policyOf.get(change.action.policy)?.notify ?? [];
      for (const { name } of receiversOf(notify.receivers, { kind: 'change_coming', owner, receivers })) {
        const key = digestKey(name, owner, change.slotMs);
        const group = groups.get(key) ?? { receiver: name, owner, slotMs: change.slotMs, changes: [], leadMsOf };
        group.changes.push({ ...change, restartedAtMs: evaluated.record.lastDisruption?.atMs ?? 0 });
        groups.set(key, group);
      }
    }
  }
  return groups;
}

/** Adds applied values that a reading lacks, since it began while they took effect: otherwise the change would be announced once more. */
function withAppliedValues({ fleet }: ComingDeps, evaluated: EvaluatedCompute): EvaluatedCompute {
  const readAtMs = fleet.cachedProject(evaluated.compute.projectId)?.readAtMs ?? 0;
  const compute = withoutLag(evaluated.compute, evaluated.record, readAtMs);
  if (compute === evaluated.compute) return evaluated;
  // With `lagging` in the record, nothing would be announced before a newer reading.
  const { lagging: _lagging, ...record } = evaluated.record;
  return { ...evaluated, compute, record };
}

/** Creates a test for raises whose instants may move, since the waves of their opening are not fixed yet. They are announced later. */
function createMayMove(policies: CompiledPolicies, span: { nowMs: number; toMs: number }) {
  const openings = openingsWithoutWaves(policies, policies.readyWaves, span);
  return ({ action, instantMs }: ComingChange, policy: Policy | undefined): boolean =>
    policy !== undefined &&
    changeKind([action]) === 'raise' &&
    hasReadyWaves([policy]) &&
    openings.some((opensAtMs) => instantMs <= opensAtMs && instantMs >= opensAtMs - LONGEST_WAVE_LEAD_MS);
}
