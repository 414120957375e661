/** The cost of floors, estimated from the usage and the operations of the last two weeks, which daemons have stored. */

import { createOperationLog } from '../../domain/awake/operation-log.ts';
import { lastingPolicies } from '../../domain/decide/control-group.ts';
import { floorsInEffect } from '../../domain/decide/stages/floors.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { costOfFloors } from '../../domain/recommend/floor-cost.ts';
import type { Amount } from '../../domain/recommend/saving.ts';
import { settingsHad } from '../../domain/recommend/settings-had.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import { HOURS_KEPT } from '../../domain/usage/stored.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { addOperations } from '../fleet/read-operations.ts';
import { decodeOperations, planOfAccount, readKeptOperations } from '../usage/kept-operations.ts';
import { type StoredUsage, storedUsageOf } from '../usage/usage-account.ts';
import { type PastCompute, pastOfComputes } from './facts.ts';

const SPAN_MS = HOURS_KEPT * HOUR_MS;

/** The saving that floors prevent in a month, by compute id. Leaves out computes whose past is unknown. */
export async function floorCosts(
  parts: { store: StoredUsage; fleet: Pick<Fleet, 'cachedProject'>; policies: CompiledPolicies; costs: CostRules },
  floored: readonly EvaluatedCompute[],
  nowMs: number,
): Promise<ReadonlyMap<string, Amount>> {
  const { policies } = parts;
  const span = { fromMs: nowMs - SPAN_MS, toMs: nowMs };
  const pasts = await pastOf(parts, [...new Set(floored.map(({ compute }) => compute.projectId))], span);
  const withoutFloors = floored.map(({ compute, record: { baseline } }) => ({ compute, baseline }));
  const forecasts = forecastFleet({ policies: lastingPolicies(policies), subjects: withoutFloors, ...span });
  const costs = new Map<string, Amount>();
  for (const [index, { compute, record }] of floored.entries()) {
    const past = pasts.get(compute.computeId);
    const { baseline } = record;
    const { had, rules } = settingsHad({ compute, baseline, changes: record }, forecasts[index]?.segments ?? []);
    if (!past?.hours || rules.length === 0) continue;
    const evidence = { compute, had, hours: past.hours, history: past.readHistory() };
    const floors = floorsInEffect(policies, compute, record.floors, nowMs);
    const cost = costOfFloors({ evidence, rules, priceAt: () => past.price }, floors);
    if (cost) costs.set(compute.computeId, cost);
  }
  return costs;
}

/** The stored past of all computes of some projects, by compute id. */
async function pastOf(
  { store, fleet, costs }: { store: StoredUsage; fleet: Pick<Fleet, 'cachedProject'>; costs: CostRules },
  projectIds: readonly string[],
  span: { fromMs: number; toMs: number },
): Promise<ReadonlyMap<string, PastCompute>> {
  const log = createOperationLog();
  const kept = await readKeptOperations(store, { sinceMs: span.fromMs, nowMs: span.toMs, projectIds });
  const pasts = new Map<string, PastCompute>();
  for (const projectId of projectIds) {
    const { project, computes = [] } = fleet.cachedProject(projectId) ?? {};
    const bytes = kept.get(projectId);
    const read = bytes && (await decodeOperations(projectId, bytes));
    if (read) {
      addOperations(log.project(projectId), read.operations);
      log.project(projectId).coverFrom(Math.max(span.fromMs, read.oldestMs));
    }
    if (!project) continue;
    const { usage, plan: inUsage } = await storedUsageOf(store, project, computes);
    const plan = await planOfAccount(store, costs, { account: project.account, inUsage });
    const pricing = () => (plan === undefined ? {} : { plan, price: costs.prices[plan] });
    const storedAtMs = new Map(read ? [[projectId, read.readAtMs]] : []);
    for (const past of pastOfComputes({ computes, log, usage, ...span, pricing, storedAtMs }))
      pasts.set(past.compute.computeId, past);
  }
  return pasts;
}
