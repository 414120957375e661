import { mapInTurns } from '../../common/in-turns.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { type CuSeconds, savedCuSeconds } from '../../domain/compute/cost.ts';
import { connectionsAt } from '../../domain/connections/connections.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { countBy, groupBy } from '../../domain/grouping.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import { computeOwners, UNOWNED } from '../../domain/policy/owners.ts';
import type { Clock } from '../../ports/clock.ts';
import { COMPUTE_STATUSES } from '../../ports/compute-events.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import { type JobQueue, QUEUE_NAMES } from '../../ports/job-queue.ts';
import type { Store } from '../../ports/store.ts';
import type { ComputeSeries, Telemetry } from '../../ports/telemetry.ts';
import type { Samples } from '../connections/samples.ts';
import { frozenTest, statusOf } from '../evaluate-project/compute-status.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { LeaderLease } from '../group/leader.ts';
import type { Overrides } from '../overrides.ts';
import { type CurrentRules, profileOf } from '../rules.ts';

interface FleetDeps {
  fleet: Fleet;
  leaderLease: Pick<LeaderLease, 'isHeld'>;
}

export interface ComputeSeriesDeps extends FleetDeps {
  clock: Pick<Clock, 'now'>;
  rules: CurrentRules;
  samples: Pick<Samples, 'historyOf'>;
}

export interface GaugeDeps extends FleetDeps {
  api: Pick<ControlApi, 'accountStatus'>;
  clock: Pick<Clock, 'now' | 'nextTurn'>;
  mode: Mode;
  overrides: Overrides;
  queue: Pick<JobQueue, 'counts'>;
  rules: CurrentRules;
  store: Pick<Store, 'holds' | 'freezes'>;
  telemetry: Telemetry;
}

/** Yields the values of the per-compute series. Yields none unless this daemon leads, since only the leader exports them. */
export function* computeSeries(deps: ComputeSeriesDeps): Iterable<ComputeSeries> {
  if (!deps.leaderLease.isHeld()) return;
  const all = [...deps.fleet.evaluatedComputes()];
  const ownerLabel = ownerLabels(deps.rules, all);
  for (const { compute, decision, record } of all) {
    const { size, suspendTimeoutSeconds } = decision.desired;
    yield {
      compute,
      desired: { minCu: size?.minCu ?? null, maxCu: size?.maxCu ?? null, suspendTimeoutSeconds },
      baseline: record.baseline,
      owner: ownerLabel(compute),
      ...connectionsOf(deps, compute),
    };
  }
}

function connectionsOf(
  { samples, rules, clock }: ComputeSeriesDeps,
  compute: Compute,
): Pick<ComputeSeries, 'connections'> {
  const history = samples.historyOf(compute.computeId);
  // Without samples the count is unknown, not 0.
  const now = history.size === 0 ? undefined : connectionsAt(history, compute, clock.now());
  if (now === undefined) return {};
  const profile = profileOf(rules, compute.account);
  const reported = [...history.values()].map((counted) => counted.at(-1)?.maxConnections);
  const max = reported.find((one) => one !== undefined) ?? profile.maxConnections(compute);
  return { connections: { now, max, reserved: profile.reserved } };
}

/**
 * Sets the gauges of the fleet, the queue, holds and freezes. Unless this daemon leads, the gauges of the fleet are 0 or absent: dashboards take
 * the maximum over daemons, which outdated counts must not raise.
 */
export async function updateGauges(deps: GaugeDeps): Promise<void> {
  const isFrozen = await countOverrides(deps);
  await countFleet(deps, isFrozen);
  for (const { account, stalledMs = 0 } of deps.api.accountStatus()) {
    deps.telemetry.metrics.set('ebb_api_stalled_seconds', { account }, stalledMs / 1000);
  }
  await countJobs(deps);
}

async function countFleet(deps: GaugeDeps, isFrozen: ReturnType<typeof frozenTest>): Promise<void> {
  const { fleet, leaderLease, rules } = deps;
  const { metrics } = deps.telemetry;
  const all = leaderLease.isHeld() ? [...fleet.evaluatedComputes()] : [];
  const ownerLabel = ownerLabels(rules, all);
  // The owners are found in turns and memoised here: the per-compute series need them without a pause.
  const ownerAndStatus = (evaluatedCompute: EvaluatedCompute) => ({
    evaluatedCompute,
    owner: ownerLabel(evaluatedCompute.compute),
    status: statusOf(deps, evaluatedCompute, isFrozen),
  });
  const counted = await mapInTurns(all, ownerAndStatus, deps.clock);
  const statuses = countBy(counted, ({ status }) => status);
  for (const status of COMPUTE_STATUSES) metrics.set('ebb_computes', { status }, statuses.get(status) ?? 0);
  metrics.clear('ebb_computes_pending');
  for (const [owner, owned] of groupBy(counted, (one) => one.owner)) {
    const gates = owned.flatMap(({ evaluatedCompute: { plan } }) => [...new Set(gatesOf(plan))]);
    for (const [reason, value] of countBy(gates, (gate) => gate))
      metrics.set('ebb_computes_pending', { reason, owner }, value);
  }
  metrics.clear('ebb_operations_in_flight');
  const operations = all.flatMap(({ record }) => record.openOperations);
  for (const [action, value] of countBy(operations, (one) => one.action))
    metrics.set('ebb_operations_in_flight', { action }, value);
  let oldestMs = 0;
  let unreadable = 0;
  for (const { project, unreadable: ofProject } of leaderLease.isHeld() ? fleet.cachedProjects() : []) {
    unreadable += ofProject.length;
    oldestMs = Math.max(oldestMs, fleet.ageMs(project.projectId));
  }
  metrics.set('ebb_computes_unreadable', {}, unreadable);
  metrics.set('ebb_inventory_age_seconds', {}, oldestMs / 1000);
}

/** Returns a function for the label of a compute's owner: the same name as on the status page, to which alerts link; empty without an owner. */
function ownerLabels({ current: { policies, costs } }: CurrentRules, all: readonly { compute: Compute }[]) {
  const ownerOf = computeOwners({ rules: costs.owners, policies, computes: all.map(({ compute }) => compute) });
  return (compute: Compute): string => {
    const owner = ownerOf(compute);
    return owner === UNOWNED ? '' : owner;
  };
}

/** Counts holds and freezes; while the store is unavailable, those read last. Returns a test for frozen computes. */
async function countOverrides(deps: GaugeDeps): Promise<ReturnType<typeof frozenTest>> {
  const { store, clock, overrides, telemetry } = deps;
  const nowMs = clock.now();
  const read = async () => ({ holds: await store.holds(nowMs), freezes: await store.freezes(nowMs) });
  const { holds, freezes } = await read().catch(() => overrides);
  telemetry.metrics.set('ebb_holds_active', {}, holds.length);
  telemetry.metrics.set('ebb_freeze_active', {}, freezes.length > 0 ? 1 : 0);
  return frozenTest(freezes, nowMs);
}

/** Counts the jobs of the queues. While the queue is unavailable, only its own series are absent. */
async function countJobs({ queue, telemetry: { metrics } }: GaugeDeps): Promise<void> {
  metrics.clear('ebb_queue_jobs');
  const counts = await queue.counts().catch(() => undefined);
  if (!counts) return;
  for (const name of QUEUE_NAMES) {
    for (const [state, value] of Object.entries(counts[name]))
      metrics.set('ebb_queue_jobs', { queue: name, state }, value);
  }
}

/** The estimated saving of a compute over some seconds against its baseline; undefined if no policy has set a value. */
export function savedByEbb(
  { compute, record }: Pick<EvaluatedCompute, 'compute' | 'record'>,
  seconds: number,
): CuSeconds | undefined {
  const { maxCu, suspendTimeoutSeconds } = record.lastApplied;
  const isChanged = maxCu !== undefined || suspendTimeoutSeconds !== undefined;
  return isChanged ? savedCuSeconds(record.baseline, compute, seconds) : undefined;
}

export interface CountSavingsDeps extends FleetDeps {
  telemetry: Telemetry;
}

/** Adds the fleet's estimated saving of the last `seconds`. Only the leader counts, since dashboards add the counters of all daemons. */
export function countSavings({ fleet, leaderLease, telemetry: { metrics } }: CountSavingsDeps, seconds: number): void {
  if (!leaderLease.isHeld()) return;
  for (const evaluated of fleet.evaluatedComputes()) {
    const saved = savedByEbb(evaluated, seconds);
    if (!saved) continue;
    for (const bound of ['low', 'high'] as const) {
      const name = saved[bound] < 0 ? 'ebb_estimated_added_cu_seconds_total' : 'ebb_estimated_saved_cu_seconds_total';
      metrics.increment(name, { bound }, Math.abs(saved[bound]));
    }
  }
}
