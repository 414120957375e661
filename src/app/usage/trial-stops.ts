/** The leader ends a trial for good, for all daemons, once its measured cost exceeds `stop_if`. */

import type { Compute } from '../../domain/compute/compute.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import { unitOf, usageUnitOf } from '../../domain/decide/control-group.ts';
import { measuredUnit } from '../../domain/evaluate/trials.ts';
import { groupBy } from '../../domain/grouping.ts';
import { frozenPeriods } from '../../domain/policy/frozen-periods.ts';
import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { TrialPolicy } from '../../domain/policy/kinds/trial.ts';
import { AT_ANY_AGE } from '../../domain/policy/select.ts';
import type { TrialRecord } from '../../domain/records/compute-record.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { trialSpan } from '../../domain/trial/assignment.ts';
import { isStopOf, type TrialStop, type TrialUnit, tooHighCost } from '../../domain/trial/savings.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import { unitName } from '../../domain/usage/usage.ts';
import type { Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { CompiledRules } from '../rules.ts';
import { sharedDocument } from '../shared-documents.ts';
import { planOfAccount } from './kept-operations.ts';
import { lastPlan } from './project-periods.ts';
import { readTrialDays } from './trial-days.ts';
import { type Organization, usageAccount } from './usage-account.ts';

/** The ended trials. */
export const {
  read: readTrialStops,
  open: openTrialStops,
  update: updateTrialStops,
} = sharedDocument<readonly TrialStop[]>('trial-stops', 'all', 1);

/** The oldest stops beyond this number are dropped, since the records of computes have them, too. */
const MAX_STOPS = 200;

/** The leader's facts for the decision. */
export interface StopFacts {
  store: Store;
  log: Log;
  rules: CompiledRules;
  computes: readonly Compute[];
  organizations: readonly Organization[];
  nowMs: number;
}

export type StopTrials = (facts: StopFacts) => Promise<void>;

/** Returns a function that decides about each trial at most once a day, and stores and logs the trials that it ends. */
export function createStopTrials(): StopTrials {
  const decidedOn = new Map<string, number>();
  return async (facts) => {
    const { store, log, rules, nowMs } = facts;
    const today = Math.floor(nowMs / DAY_MS);
    const trials = runningTrials(rules, nowMs).filter(({ policy }) => decidedOn.get(policy.digest) !== today);
    if (trials.length === 0) return;
    const stored = await openTrialStops(store);
    // The stops in memory outlive the loss of a store.
    const before = stored.value ?? rules.policies.trialStops;
    const running = trials.filter(({ policy }) => !before.some((stop) => isStopOf(stop, policy)));
    const stops: TrialStop[] = [];
    for (const trial of running) stops.push(...(await stopOf(trial, facts)));
    // The replacement fails if another daemon has changed the stops since they were read. Then the next round decides again.
    if (stops.length > 0 && !(await stored.replace([...before, ...stops].slice(-MAX_STOPS)))) return;
    for (const { policy } of trials) decidedOn.set(policy.digest, today);
    for (const stop of stops) logStop(log, stop);
  };
}

interface RunningTrial {
  policy: TrialPolicy;
  /** The policy's index in the set. */
  index: number;
  maxUsd: number;
}

function runningTrials({ policies }: CompiledRules, nowMs: number): RunningTrial[] {
  return policies.set.policies.flatMap((one, index) => {
    const policy = asKind(one, 'trial');
    if (!policy?.stopIf || policy.mode !== 'enforce') return [];
    const { fromMs, untilMs } = trialSpan(policy.design);
    return nowMs >= fromMs && nowMs < untilMs ? [{ policy, index, maxUsd: policy.stopIf.costUsd }] : [];
  });
}

function logStop(log: Log, { policy, costUsd }: TrialStop): void {
  const cost = `withdrawing its policies has cost ${formatUsd(costUsd)}, more than stop_if allows`;
  const message = `trial ${policy} has ended: ${cost}; they apply to its control group again`;
  log.warn({ event: 'ebb.trial_stopped', policy, cost_usd: costUsd }, message);
}

/** The stop of a trial, if its cost, measured from stored data as `ebb savings` does, exceeds the limit. */
async function stopOf(
  { policy: trial, index, maxUsd }: RunningTrial,
  { store, rules: { policies, costs }, computes, organizations, nowMs }: StopFacts,
): Promise<TrialStop[]> {
  const selected = computes.filter((compute) => policies.selects(index, compute, AT_ANY_AGE));
  const units: TrialUnit[] = [];
  for (const organization of organizations) {
    const projectIds = new Set(organization.projectIds);
    const stored = usageAccount(store, organization);
    const inUsage = lastPlan((await stored.metadata())?.plans ?? []);
    const plan = await planOfAccount(store, costs, { account: organization.account, inUsage });
    const usdPerCuHour = plan === undefined ? undefined : costs.prices[plan];
    const ofOrganization = selected.filter(({ projectId }) => projectIds.has(projectId));
    const byUnit = groupBy(ofOrganization, (compute) => unitOf(trial, compute));
    const unitsToRead = [...byUnit.values()].flatMap(([compute]) => (compute ? [usageUnitOf(trial, compute)] : []));
    const days = await readTrialDays(store, organization, trial.name, unitsToRead);
    const usage = await stored.read(unitsToRead);
    const projects = new Set(unitsToRead.map(({ projectId }) => projectId));
    const trialRecords = await recordsOf(store, trial, projects);
    for (const unitUsage of usage) {
      const unit = unitName(unitUsage);
      const [compute, ...others] = byUnit.get(unit) ?? [];
      if (!compute) continue;
      units.push(
        measuredUnit(trial, {
          compute,
          usdPerCuHour,
          owner: '',
          buckets: seriesOf(unitUsage).buckets,
          days: days.get(unit) ?? new Map(),
          stored: [compute, ...others].flatMap(({ computeId }) => trialRecords.get(computeId) ?? []),
        }),
      );
    }
  }
  const periodsLeftOut = frozenPeriods(policies, trial, selected);
  const costUsd = tooHighCost({ design: trial.design, units, usedUntilMs: nowMs, periodsLeftOut }, maxUsd);
  return costUsd === undefined ? [] : [{ policy: trial.name, terms: trial.digest, stoppedAtMs: nowMs, costUsd }];
}

async function recordsOf(
  store: Pick<Store, 'records'>,
  { name }: TrialPolicy,
  projectIds: ReadonlySet<string>,
): Promise<Map<string, TrialRecord>> {
  const trialRecords = new Map<string, TrialRecord>();
  for (const projectId of projectIds) {
    for (const [computeId, { trials }] of await store.records(projectId)) {
      const trial = trials?.[name];
      if (trial) trialRecords.set(computeId, trial);
    }
  }
  return trialRecords;
}
