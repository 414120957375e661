/** The leader ends a trial whose measured cost is above `stop_if`, for all daemons: once, and for good. */

import type { Compute } from '../../domain/compute/compute.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import { unitOf, usageUnitOf } from '../../domain/decide/control-group.ts';
import { measuredUnit } from '../../domain/evaluate/trials.ts';
import { frozenPeriods } from '../../domain/policy/frozen-periods.ts';
import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { TrialPolicy } from '../../domain/policy/kinds/trial.ts';
import type { TrialRecord } from '../../domain/records/compute-record.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { trialSpan } from '../../domain/trial/assignment.ts';
import type { TrialUnit } from '../../domain/trial/savings.ts';
import { isStopOf, type TrialStop, tooHighCost } from '../../domain/trial/savings.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import { unitName } from '../../domain/usage/usage.ts';
import type { DocumentStore, Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { CompiledRules } from '../rules.ts';
import { sharedDocuments } from '../shared-documents.ts';
import { readTrialDays } from './trial-days.ts';
import { type Organization, usageAccount } from './usage-account.ts';

const STOPS = sharedDocuments<readonly TrialStop[]>('trial-stops', 1);
const NAME = 'all';

/** Older ones are forgotten: records of computes know them. */
const MOST_STOPS = 200;

/** The trials that were ended; undefined if nothing is kept. */
export function readTrialStops(store: Pick<DocumentStore, 'document'>): Promise<readonly TrialStop[] | undefined> {
  return STOPS.read(store, NAME);
}

/** The leader's facts for the decision. */
export interface StopFacts {
  store: Store;
  log: Log;
  rules: CompiledRules;
  computes: readonly Compute[];
  organizations: readonly Organization[];
  nowMs: number;
}

/** Decides about each trial at most once a day; an ended one is stored and logged. */
export type TrialStops = (facts: StopFacts) => Promise<void>;

export function createTrialStops(): TrialStops {
  const decidedOn = new Map<string, number>();
  return async (facts) => {
    const { store, log, rules, nowMs } = facts;
    const today = Math.floor(nowMs / DAY_MS);
    const trials = runningTrials(rules, nowMs).filter(({ policy }) => decidedOn.get(policy.digest) !== today);
    if (trials.length === 0) return;
    // A store that came back empty takes nothing away.
    const kept = await STOPS.open(store, NAME);
    const before = kept.value ?? rules.policies.trialStops;
    const running = trials.filter(({ policy }) => !before.some((stop) => isStopOf(stop, policy)));
    const stops: TrialStop[] = [];
    for (const trial of running) stops.push(...(await stopOf(trial, facts)));
    // Another daemon that leads by now decides itself.
    if (stops.length > 0 && !(await kept.replace([...before, ...stops].slice(-MOST_STOPS)))) return;
    for (const { policy } of trials) decidedOn.set(policy.digest, today);
    for (const stop of stops) logStop(log, stop);
  };
}

interface RunningTrial {
  policy: TrialPolicy;
  /** Its place in the set. */
  index: number;
  mostUsd: number;
}

function runningTrials({ policies }: CompiledRules, nowMs: number): RunningTrial[] {
  return policies.set.policies.flatMap((one, index) => {
    const policy = asKind(one, 'trial');
    if (!policy?.stopIf || policy.mode !== 'enforce') return [];
    const { fromMs, untilMs } = trialSpan(policy.design);
    return nowMs >= fromMs && nowMs < untilMs ? [{ policy, index, mostUsd: policy.stopIf.costUsd }] : [];
  });
}

function logStop(log: Log, { policy, costUsd }: TrialStop): void {
  const cost = `withdrawing its policies has cost ${formatUsd(costUsd)}, more than stop_if allows`;
  const message = `trial ${policy} has ended: ${cost}; they apply to its control group again`;
  log.warn({ event: 'ebb.trial_stopped', policy, cost_usd: costUsd }, message);
}

/** The stop of a trial whose cost, as `ebb savings` measures it from stored data, is above the amount; else none. */
async function stopOf(
  { policy: trial, index, mostUsd }: RunningTrial,
  { store, rules: { policies, costs }, computes, organizations, nowMs }: StopFacts,
): Promise<TrialStop[]> {
  const selected = computes.filter((compute) => policies.selects(index, compute, Number.POSITIVE_INFINITY));
  const units: TrialUnit[] = [];
  for (const organization of organizations) {
    const projectIds = new Set(organization.projectIds);
    const plan = costs.plans.get(organization.account);
    const usdPerCuHour = plan === undefined ? undefined : costs.prices[plan];
    const own = new Map<string, Compute[]>();
    for (const compute of selected.filter(({ projectId }) => projectIds.has(projectId))) {
      const unit = unitOf(trial, compute);
      own.set(unit, [...(own.get(unit) ?? []), compute]);
    }
    const asked = [...own.values()].flatMap(([compute]) => (compute ? [usageUnitOf(trial, compute)] : []));
    const days = await readTrialDays(store, organization, trial.name, asked);
    const usage = await usageAccount(store, organization).read(asked);
    const stored = await recordsOf(
      store,
      trial,
      asked.map(({ projectId }) => projectId),
    );
    for (const kept of usage) {
      const unit = unitName(kept);
      const [compute, ...others] = own.get(unit) ?? [];
      if (!compute) continue;
      units.push(
        measuredUnit(trial, {
          compute,
          usdPerCuHour,
          owner: '',
          buckets: seriesOf(kept).buckets,
          days: days.get(unit) ?? new Map(),
          stored: [compute, ...others].flatMap(({ computeId }) => stored.get(computeId) ?? []),
        }),
      );
    }
  }
  const periodsLeftOut = frozenPeriods(policies, trial, selected);
  const costUsd = tooHighCost({ design: trial.design, units, nowMs, periodsLeftOut }, mostUsd);
  return costUsd === undefined ? [] : [{ policy: trial.name, terms: trial.digest, stoppedAtMs: nowMs, costUsd }];
}

async function recordsOf(
  store: Pick<Store, 'records'>,
  { name }: TrialPolicy,
  projectIds: readonly string[],
): Promise<Map<string, TrialRecord>> {
  const found = new Map<string, TrialRecord>();
  for (const projectId of new Set(projectIds)) {
    for (const [computeId, { trials }] of await store.records(projectId)) {
      const trial = trials?.[name];
      if (trial) found.set(computeId, trial);
    }
  }
  return found;
}
