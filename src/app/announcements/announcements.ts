/**
 * Notifications about the whole fleet, sent by its leader. Each round computes them from the present state, with stable ids, so that
 * nothing is lost with a daemon and nothing is queued twice.
 */

import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import { boundaryAfter, type EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { openingsWithoutWaves } from '../../domain/evaluate/ready-waves.ts';
import {
  type ComingChange,
  comingChanges,
  digestOfChanges,
  type Future,
  leadOf,
  longestLead,
  planAt,
} from '../../domain/notifications/coming-change.ts';
import { type Notification, receiversOf } from '../../domain/notifications/notification.ts';
import { changeKind } from '../../domain/plan/plan.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { asKind, policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { computeOwners } from '../../domain/policy/owners.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { NO_TEAM, unloadedTeams } from '../../domain/policy/team-parts.ts';
import { LONGEST_WAVE_LEAD_MS } from '../../domain/policy/waves.ts';
import { withoutLag } from '../../domain/records/lag.ts';
import { type BudgetState, describeBudget } from '../../domain/spend/state.ts';
import { type StepThreshold, sameStep, stepText } from '../../domain/spend/terms.ts';
import { DAY_MS, HOUR_MS, isoInstant } from '../../domain/time/units.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { OutboxEntry } from '../../ports/outbox.ts';
import type { Store } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import { adoptProject, type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import { isAtBoundary } from '../fleet/at-boundary.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { LeaderLease } from '../group/leader.ts';
import { outboxEntries, outboxEntry } from '../notifications/notify.ts';
import { digestKey, type KnownDigests, SENT_DIGESTS, type SentDigests } from '../notifications/sent-digests.ts';
import { type SetsDeps, stagedSets } from '../rollout/write-permission.ts';
import { hasReadyWaves } from '../stored-waves.ts';
import type { OutageDeps } from '../telemetry/outages.ts';
import { readBudgets } from '../usage/budget-store.ts';
import { readSummary } from '../usage/cost-summary.ts';
import { createGathering, type IsGathered } from './gathering.ts';
import { createOutageNotifications } from './of-outages.ts';
import { createFreezeNotifications, holdNotifications } from './of-overrides.ts';
import { createPolicyFileNotifications } from './of-policy-files.ts';

/** Interval between rounds, in real milliseconds. */
const ROUND_MS = 5_000;

/** Interval at which daemons that don't lead read what was announced, in milliseconds. */
const LEARN_EVERY_MS = 15_000;

/** A record of what a digest has announced is kept for this long after its slot, in milliseconds: retries, limits and outages delay changes. */
const KEPT_MS = 6 * HOUR_MS;

/** Projects whose records are read concurrently. */
const CONCURRENT_READS = 8;

/** How many queued ids this daemon remembers. The store rejects repeated ids, too. */
const MAX_REMEMBERED_IDS = 20_000;

export interface AnnounceDeps extends EvaluateDeps, SetsDeps, OutageDeps {
  api: Pick<ControlApi, 'accountStatus'>;
  store: Pick<
    Store,
    'appendOutbox' | 'document' | 'documents' | 'putDocument' | 'replaceDocument' | 'deleteDocuments' | 'records'
  >;
  fleet: Fleet;
  leaderLease: LeaderLease;
  runInBackground: RunInBackground;
  knownDigests: KnownDigests;
}

export function startAnnouncements(deps: AnnounceDeps): Running {
  const { clock, leaderLease, fleet, knownDigests } = deps;
  const queued = new Set<string>();
  let learntAtMs = Number.NEGATIVE_INFINITY;
  const futureOf = createFutureCache(deps);
  const isGathered = createGathering(clock);
  const known = () => ({ futureOf, isGathered, sent: knownDigests.current });
  const freezes = createFreezeNotifications(deps);
  const lasting = [createPolicyFileNotifications(deps), createOutageNotifications(deps)];

  async function queueNews(): Promise<void> {
    const { receivers } = deps.rules.current.notify;
    for (const states of lasting) states.look();
    // Changes at a boundary come first.
    if (receivers.length === 0 || isAtBoundary(fleet, clock.now())) return;
    if (!leaderLease.isHeld()) {
      await learnStored();
      return;
    }
    const found = comingDigests(deps, known());
    // Another daemon, or this one before its restart, may have queued them, or made the changes.
    if (found.length > 0) {
      await readSentDigests(deps);
      const projectIds = new Set(found.flatMap((one) => one.projectIds));
      await pLimit(CONCURRENT_READS).map(projectIds, (projectId) => adoptProject(deps, projectId));
    }
    const coming = found.length > 0 ? comingDigests(deps, known()) : [];
    const ofStates = await Promise.all(lasting.map((states) => states.read()));
    const ofFleet = [freezes(), ofStates.flat(), await fleetNotifications(deps)].flat();
    const entries = [...coming.map(({ entry }) => entry), ...outboxEntries(deps.rules.current.notify, ofFleet)];
    const fresh = entries.filter(({ id }) => !queued.has(id));
    if (fresh.length > 0) await deps.store.appendOutbox(fresh);
    for (const { key, digest } of coming) {
      await SENT_DIGESTS.put(deps.store, key, digest);
      knownDigests.current = new Map([...knownDigests.current, [key, digest]]);
    }
    remember(fresh);
  }

  /** Any daemon of the group may have to write them back. */
  async function learnStored(): Promise<void> {
    if (clock.now() - learntAtMs < LEARN_EVERY_MS) return;
    learntAtMs = clock.now();
    await readSentDigests(deps);
    for (const states of lasting) await states.learn();
  }

  function remember(entries: readonly OutboxEntry[]): void {
    if (queued.size > MAX_REMEMBERED_IDS) queued.clear();
    for (const { id } of entries) queued.add(id);
  }

  return clock.every(ROUND_MS, () => deps.runInBackground('notifications', queueNews));
}

type FutureOf = (evaluated: EvaluatedCompute) => Future;

/** Creates a function for the future of a compute, each part of which is computed once for each evaluation and set of policies. */
function createFutureCache(deps: EvaluateDeps): FutureOf {
  const cache = new WeakMap<EvaluatedCompute, { policies: CompiledPolicies; future: Future }>();
  return (evaluated) => {
    const { policies } = deps.rules.current;
    const before = cache.get(evaluated);
    if (before?.policies === policies) return before.future;
    const { compute, record } = evaluated;
    const situation = () => situationOf(deps, { compute, record, projectBusy: false });
    const future: Future = {
      plan: onceEach((instantMs) => planAt(situation(), instantMs)),
      boundaryAfter: onceEach((instantMs) => boundaryAfter(situation(), instantMs)),
    };
    cache.set(evaluated, { policies, future });
    return future;
  };
}

/** A function that computes its result once for each instant. */
function onceEach<Result>(compute: (instantMs: number) => Result): (instantMs: number) => Result {
  const known = new Map<number, Result>();
  return (instantMs) => {
    const result = known.has(instantMs) ? (known.get(instantMs) as Result) : compute(instantMs);
    known.set(instantMs, result);
    return result;
  };
}

/** Reads the digests that have not expired, and deletes the others. What the store may just have lost stays known. */
async function readSentDigests({ store, clock, leaderLease, knownDigests }: AnnounceDeps): Promise<void> {
  const stored = await SENT_DIGESTS.all(store);
  const isOver = ({ untilMs }: { untilMs: number }) => untilMs < clock.now();
  const ended = [...stored].filter(([, digest]) => isOver(digest)).map(([key]) => key);
  if (ended.length > 0 && leaderLease.isHeld()) await SENT_DIGESTS.delete(store, ended);
  knownDigests.current = new Map([...knownDigests.current, ...stored].filter(([, digest]) => !isOver(digest)));
}

/**
 * Returns the digests of coming changes that are due and were not queued: one for each receiver, owner and slot. Another one follows only
 * if a compute will be disconnected that was not in it, or only with another timeout. The id depends on the computes, so that the store
 * accepts both.
 */
function comingDigests(
  deps: AnnounceDeps,
  { futureOf, isGathered, sent }: { futureOf: FutureOf; isGathered: IsGathered; sent: SentDigests },
) {
  const { notify } = deps.rules.current;
  const nowMs = deps.clock.now();
  return [...groupComing(deps, futureOf, nowMs)].flatMap(([key, { receiver, owner, slotMs, changes, leads }]) => {
    const sentBefore = sent.get(key);
    const before = new Set(sentBefore?.computeIds);
    const toldOfTimeout = new Set(sentBefore?.timeoutIds);
    const news = changes.filter(
      ({ compute: { computeId }, action }) =>
        !before.has(computeId) || (action.disconnects && toldOfTimeout.has(computeId)),
    );
    const restarting = news
      .filter(({ action }) => action.disconnects)
      .map((one) => ({
        computeId: one.compute.computeId,
        leftMs: one.instantMs - nowMs,
        realLeftMs: deps.clock.realDelayMs(one.instantMs),
        leadMs: leads(one) ?? 0,
      }));
    const isDue = restarting.some(({ leftMs, leadMs }) => leftMs <= leadMs);
    const [first, ...others] = news;
    if (!first || !isDue || !isGathered(key, restarting)) return [];
    const newIds = [...new Set(news.map(({ compute }) => compute.computeId))].sort();
    const hash = createHash('sha256').update(newIds.join()).digest('hex').slice(0, 16);
    const notification = digestOfChanges([first, ...others], { id: `${owner}:${slotMs}:${hash}`, owner, nowMs });
    const restarts = restarting.map(({ computeId }) => computeId);
    const timeouts = news
      .filter(({ action, compute }) => changeKind([action]) === 'timeout' && !restarts.includes(compute.computeId))
      .map(({ compute }) => compute.computeId);
    const digest = {
      computeIds: [...new Set([...before, ...newIds])],
      timeoutIds: [...[...toldOfTimeout].filter((id) => !newIds.includes(id)), ...timeouts],
      restartIds: [...new Set([...(sentBefore?.restartIds ?? []), ...restarts])],
      instants: { ...sentBefore?.instants, ...laterInstants(news) },
      toMs: Math.max(sentBefore?.toMs ?? 0, ...news.map(({ instantMs }) => instantMs)),
      untilMs: slotMs + KEPT_MS,
    };
    const projectIds = news.map(({ compute }) => compute.projectId);
    return [{ key, entry: outboxEntry(notification, receiver, notify.statusUrl), digest, projectIds }];
  });
}

/** The instants of the changes that come later than their slot begins, by compute: of several, that of the last, which disconnects. */
function laterInstants(changes: readonly ComingChange[]): Record<string, number> {
  const later = changes.filter(({ instantMs, slotMs }) => instantMs > slotMs);
  return Object.fromEntries(later.map(({ compute: { computeId }, instantMs }) => [computeId, instantMs]));
}

interface ComingGroup {
  receiver: string;
  owner: string;
  slotMs: number;
  changes: ComingChange[];
  leads(change: ComingChange): number | undefined;
}

/** Groups the changes within the longest lead by receiver, owner and slot. Changes by a policy without a lead are left out. */
function groupComing(deps: AnnounceDeps, futureOf: FutureOf, nowMs: number): Map<string, ComingGroup> {
  const { policies, notify, costs } = deps.rules.current;
  const policyOf = new Map(policies.set.policies.map((policy) => [policy.name, policy]));
  const leads = ({ action }: Pick<ComingChange, 'action'>) => leadOf(policyOf.get(action.policy), notify.beforeMs);
  const longestMs = longestLead(policies.set, notify.beforeMs);
  const groups = new Map<string, ComingGroup>();
  if (longestMs === 0) return groups;
  const all = [...deps.fleet.evaluatedComputes()].map((one) => withAppliedValues(deps, one));
  const ownerOf = computeOwners({ rules: costs.owners, policies, computes: all.map(({ compute }) => compute) });
  const { readyWaves } = policies;
  const mayMove = createMayMove(policies, { nowMs, toMs: nowMs + longestMs + LONGEST_WAVE_LEAD_MS });
  const span = { nowMs, untilMs: nowMs + longestMs };
  for (const evaluated of all) {
    for (const change of comingChanges(evaluated, { ...span, readyWaves, ...futureOf(evaluated) })) {
      if (leads(change) === undefined || mayMove(change, policyOf.get(change.action.policy))) continue;
      const owner = ownerOf(change.compute);
      const receivers = policyOf.get(change.action.policy)?.notify ?? [];
      for (const { name } of receiversOf(notify.receivers, { kind: 'change_coming', owner, receivers })) {
        const key = digestKey(name, owner, change.slotMs);
        const group = groups.get(key) ?? { receiver: name, owner, slotMs: change.slotMs, changes: [], leads };
        group.changes.push(change);
        groups.set(key, group);
      }
    }
  }
  return groups;
}

/** A reading that began while another daemon's change took effect may show the values before it: that change would be announced once more. */
function withAppliedValues({ fleet }: AnnounceDeps, evaluated: EvaluatedCompute): EvaluatedCompute {
  const readAtMs = fleet.cachedProject(evaluated.compute.projectId)?.readAtMs ?? 0;
  const compute = withoutLag(evaluated.compute, evaluated.record, readAtMs);
  return compute === evaluated.compute ? evaluated : { ...evaluated, compute };
}

/** Creates a test for raises before openings whose waves are not fixed: they are announced once it is known when they come. */
function createMayMove(policies: CompiledPolicies, span: { nowMs: number; toMs: number }) {
  const openings = openingsWithoutWaves(policies, policies.readyWaves, span);
  return ({ action, instantMs }: ComingChange, policy: Policy | undefined): boolean =>
    policy !== undefined &&
    changeKind([action]) === 'raise' &&
    hasReadyWaves([policy]) &&
    openings.some((opensAtMs) => instantMs <= opensAtMs && instantMs >= opensAtMs - LONGEST_WAVE_LEAD_MS);
}

async function fleetNotifications(deps: AnnounceDeps): Promise<Notification[]> {
  return [
    ...stagedNotifications(deps),
    ...holdNotifications(deps, deps.clock.now()),
    ...refusedKeyNotifications(deps),
    ...(await spendAnomalyNotifications(deps)),
    ...(await readBudgetStepNotifications(deps)),
  ];
}

function stagedNotifications(deps: AnnounceDeps): Notification[] {
  const unloaded = unloadedTeams(deps.rules.current.policies.set);
  return stagedSets(deps).map(({ team, hash, message, impact: { byPolicy = {}, examples = [] } }) => {
    const counts = Object.entries(byPolicy).map(([policy, count]) => `${policy} restarts ${count}`);
    const what = counts.length > 0 ? ` (${counts.join(', ')}; such as ${examples.join(', ')})` : '';
    return {
      // Reported again if a restart has lost the policies that were in effect meanwhile.
      id: `staged:${hash}${unloaded.includes(team) ? ':not_loaded' : ''}`,
      kind: 'staged',
      atMs: deps.clock.now(),
      text: `${message}${what}`,
      ...(team !== NO_TEAM && { owner: team }),
      command: `ebb approve ${hash}`,
    };
  });
}

/** Notifies about a refused key once a day while it is refused. */
function refusedKeyNotifications({ api, clock }: AnnounceDeps): Notification[] {
  const nowMs = clock.now();
  const refused = api.accountStatus().filter(({ key }) => key === 'refused');
  return refused.map(({ account, message }) => ({
    id: `key_refused:${account}:${Math.floor(nowMs / DAY_MS)}`,
    kind: 'key_refused',
    atMs: nowMs,
    text: message ?? `the control API refuses the key of the account ${account}`,
  }));
}

async function readBudgetStepNotifications({ store, clock, rules }: AnnounceDeps): Promise<Notification[]> {
  const { set } = rules.current.policies;
  if (policiesOfKind(set.policies, 'budget').length === 0) return [];
  return budgetStepNotifications((await readBudgets(store)) ?? [], set, clock.now());
}

async function spendAnomalyNotifications({ store, clock }: AnnounceDeps): Promise<Notification[]> {
  const summary = await readSummary(store);
  return (summary?.owners ?? []).flatMap(({ account, owner, anomaly }) => {
    if (!anomaly) return [];
    const { day, cu_hours: used, ordinary_cu_hours: ordinary } = anomaly;
    return {
      id: `spend_anomaly:${account}:${owner}:${day}`,
      kind: 'spend_anomaly' as const,
      atMs: clock.now(),
      owner,
      text: `${owner} used ${used} CU-hours on ${day} in the account ${account}; up to ${ordinary} are usual for that weekday`,
      command: 'ebb cost',
    };
  });
}

/** Notifies about budget steps that are reached this month or that limit. They go to the step's own receivers and the owner's. */
export function budgetStepNotifications(
  states: readonly BudgetState[],
  { policies }: Pick<PolicySet, 'policies'>,
  nowMs: number,
): Notification[] {
  return states.flatMap((state) => {
    const { policy, account, fromMs, notified, spans } = state;
    const budget = asKind(
      policies.find(({ name }) => name === policy),
      'budget',
    );
    if (budget === undefined || budget.mode === 'observe') return [];
    const limiting = spans.filter((span) => span.fromMs >= fromMs && span.untilMs > nowMs);
    const notificationOf = (threshold: StepThreshold, what: 'is reached' | 'limits'): Notification => ({
      id: `budget_step:${[policy, account, isoInstant(fromMs).slice(0, 10), stepText(threshold), what].join(':')}`,
      kind: 'budget_step',
      atMs: nowMs,
      policy,
      ...(budget.owner !== undefined && { owner: budget.owner }),
      text: `budget ${policy} of the account ${account}: step ${stepText(threshold)} ${what}; ${describeBudget(state)}`,
      receivers: [...(budget.notify ?? []), ...(budget.steps.find((step) => sameStep(step, threshold))?.notify ?? [])],
      ...(what === 'limits' && { command: `ebb release --budget ${policy}` }),
    });
    return [
      ...notified.map((threshold) => notificationOf(threshold, 'is reached')),
      ...limiting.map((threshold) => notificationOf(threshold, 'limits')),
    ];
  });
}
