/**
 * Notifications about the whole fleet, sent by its leader. Each round computes them from the present state, with stable ids, so that
 * nothing is lost with a daemon and nothing is queued twice.
 */

import pLimit from 'p-limit';
import type { Notification } from '../../domain/notifications/notification.ts';
import { asKind, policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { NO_TEAM, unloadedTeams } from '../../domain/policy/team-parts.ts';
import { type BudgetState, describeBudget } from '../../domain/spend/state.ts';
import { limitsText, type StepThreshold, sameStep, stepText } from '../../domain/spend/terms.ts';
import { isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { RunInBackground, Running } from '../background.ts';
import { adoptProject, type EvaluateDeps } from '../evaluate-project/evaluate.ts';
import { isAtBoundary } from '../fleet/at-boundary.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { LeaderLease } from '../group/leader.ts';
import { outboxEntries } from '../notifications/notify.ts';
import { type KnownDigests, SENT_DIGESTS } from '../notifications/sent-digests.ts';
import { createToldMessages } from '../notifications/told.ts';
import { type SetsDeps, stagedSets } from '../rollout/write-permission.ts';
import type { OutageDeps } from '../telemetry/outages.ts';
import { readBudgets } from '../usage/budget-store.ts';
import { readSummary } from '../usage/cost-summary.ts';
import { comingDigests, createFutureCache } from './coming-digests.ts';
import { createGathering } from './gathering.ts';
import { createKeyNotifications } from './of-keys.ts';
import { createOutageNotifications } from './of-outages.ts';
import { createFreezeNotifications, holdNotifications } from './of-overrides.ts';
import { createPolicyFileNotifications } from './of-policy-files.ts';

/** Interval between rounds, in real milliseconds. */
const ROUND_MS = 5_000;

/** Interval at which daemons that don't lead read what was announced, in milliseconds. */
const LEARN_EVERY_MS = 15_000;

/**
 * Searches for coming changes wait at most this long for the changes at boundaries, in milliseconds. In an outage, and in the minute after its
 * end, the changes take longer, also until the next boundary, and what comes then must still be announced in time.
 */
const MAX_YIELD_MS = MINUTE_MS;

/** Projects whose records are read concurrently. */
const CONCURRENT_READS = 8;

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
  const { clock, leaderLease, knownDigests } = deps;
  const told = createToldMessages(deps.store);
  let learntAtMs = Number.NEGATIVE_INFINITY;
  const futureOf = createFutureCache(deps);
  const isGathered = createGathering(clock);
  const digestInput = () => ({ futureOf, isGathered, sent: knownDigests.current });
  const freezes = createFreezeNotifications(deps);
  const lasting = [createPolicyFileNotifications(deps), createOutageNotifications(deps), createKeyNotifications(deps)];

  const yieldsToBoundary = createYield(deps);

  async function queueNews(): Promise<void> {
    for (const states of lasting) states.notePresent();
    if (deps.rules.current.notify.receivers.length === 0) return;
    // What people do, and what is wrong, is told at once; the search for coming changes takes processor time.
    if (leaderLease.isHeld()) await queueStates();
    if (yieldsToBoundary()) return;
    await (leaderLease.isHeld() ? queueComing() : learnStored());
  }

  async function queueStates(): Promise<void> {
    const ofStates = await Promise.all(lasting.map((states) => states.read()));
    const ofFleet = [freezes(), ofStates.flat(), await fleetNotifications(deps)].flat();
    await told.queue(outboxEntries(deps.rules.current.notify, ofFleet));
  }

  async function queueComing(): Promise<void> {
    const found = comingDigests(deps, digestInput());
    // Another daemon, or this one before its restart, may have queued these digests, or made the changes.
    if (found.length > 0) {
      await readSentDigests(deps);
      const projectIds = new Set(found.flatMap((one) => one.projectIds));
      await pLimit(CONCURRENT_READS).map(projectIds, (projectId) => adoptProject(deps, projectId));
    }
    const coming = found.length > 0 ? comingDigests(deps, digestInput()) : [];
    if (coming.length > 0) await deps.store.appendOutbox(coming.map(({ entry }) => entry));
    for (const { key, digest } of coming) {
      await SENT_DIGESTS.put(deps.store, key, digest);
      knownDigests.current = new Map([...knownDigests.current, [key, digest]]);
    }
  }

  /** Reads what was announced, since any daemon of the group may have to write it back after a loss of the store. */
  async function learnStored(): Promise<void> {
    if (clock.now() - learntAtMs < LEARN_EVERY_MS) return;
    learntAtMs = clock.now();
    await readSentDigests(deps);
    for (const states of lasting) await states.learn();
    await told.learn();
  }

  return clock.every(ROUND_MS, () => deps.runInBackground('notifications', queueNews));
}

/** Creates a test for whether a round waits for changes at a boundary. Boundaries may follow each other, so the wait of all of them is limited. */
function createYield({ fleet, clock }: Pick<AnnounceDeps, 'fleet' | 'clock'>): () => boolean {
  let sinceMs: number | undefined;
  return () => {
    const nowMs = clock.now();
    sinceMs = isAtBoundary(fleet, nowMs, { forMs: MAX_YIELD_MS }) ? (sinceMs ?? nowMs) : undefined;
    return sinceMs !== undefined && nowMs - sinceMs < MAX_YIELD_MS;
  };
}

/** Reads the digests that have not expired; the leader deletes the others. Digests that the store has lost stay known. */
async function readSentDigests({ store, clock, leaderLease, knownDigests }: AnnounceDeps): Promise<void> {
  const stored = await SENT_DIGESTS.all(store);
  const isOver = ({ untilMs }: { untilMs: number }) => untilMs < clock.now();
  const ended = [...stored].filter(([, digest]) => isOver(digest)).map(([key]) => key);
  if (ended.length > 0 && leaderLease.isHeld()) await SENT_DIGESTS.delete(store, ended);
  knownDigests.current = new Map([...knownDigests.current, ...stored].filter(([, digest]) => !isOver(digest)));
}

async function fleetNotifications(deps: AnnounceDeps): Promise<Notification[]> {
  return [
    ...stagedNotifications(deps),
    ...holdNotifications(deps, deps.clock.now()),
    ...(await spendAnomalyNotifications(deps)),
    ...(await readBudgetStepNotifications(deps)),
  ];
}

function stagedNotifications(deps: AnnounceDeps): Notification[] {
  const unloaded = unloadedTeams(deps.rules.current.policies.set);
  return stagedSets(deps).map(({ team, hash, message, impact: { byPolicy = {}, examples = [] } }) => {
    const counts = Object.entries(byPolicy).map(([policy, count]) => `${policy} restarts ${count}`);
    const suffix = counts.length > 0 ? ` (${counts.join(', ')}; such as ${examples.join(', ')})` : '';
    return {
      // If a restart has lost the policies that were in effect, the id differs, so that the set is reported again.
      id: `staged:${hash}${unloaded.includes(team) ? ':not_loaded' : ''}`,
      kind: 'staged',
      atMs: deps.clock.now(),
      text: `${message}${suffix}`,
      ...(team !== NO_TEAM && { owner: team }),
      command: `ebb approve ${hash}`,
    };
  });
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
    const stepOf = (threshold: StepThreshold) => budget.steps.find((step) => sameStep(step, threshold));
    const textOf = (threshold: StepThreshold, what: 'is reached' | 'limits') =>
      `step ${stepText(threshold)} ${what}${what === 'limits' ? `: ${limitsText(stepOf(threshold) ?? {})}` : ''}`;
    const notificationOf = (threshold: StepThreshold, what: 'is reached' | 'limits'): Notification => ({
      id: `budget_step:${[policy, account, isoInstant(fromMs).slice(0, 10), stepText(threshold), what].join(':')}`,
      kind: 'budget_step',
      atMs: nowMs,
      policy,
      ...(budget.owner !== undefined && { owner: budget.owner }),
      text: `budget ${policy} of the account ${account}: ${textOf(threshold, what)}; ${describeBudget(state)}`,
      receivers: [...(budget.notify ?? []), ...(stepOf(threshold)?.notify ?? [])],
      ...(what === 'limits' && { command: `ebb release --budget ${policy}` }),
    });
    return [
      ...notified.map((threshold) => notificationOf(threshold, 'is reached')),
      ...limiting.map((threshold) => notificationOf(threshold, 'limits')),
    ];
  });
}
