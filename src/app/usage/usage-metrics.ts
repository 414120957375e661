/** The leader's metrics of usage and costs, and its log lines about anomalies. */
import { toHundredths } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { type Projection, sumOfProjections } from '../../domain/usage/projection.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Counterfactual } from './counterfactual.ts';
import type { MonthCosts, OwnerCosts } from './month-costs.ts';

/** Removes the series that this module exports. */
export function clearUsageMetrics({ metrics }: Telemetry): void {
  metrics.clear('ebb_usage_month_cu_seconds');
  metrics.clear('ebb_cost_month_to_date_usd');
  metrics.clear('ebb_cost_month_projected_usd');
  metrics.clear('ebb_spend_anomaly_cu_hours');
  metrics.clear('ebb_counterfactual_saved_cu_seconds');
  metrics.clear('ebb_usage_unknown_hours');
  metrics.clear('ebb_usage_age_seconds');
}

/** Exports the age of usage, which grows between readings. */
export function exportUsageAge({ metrics }: Telemetry, costs: readonly MonthCosts[], nowMs: number): void {
  for (const { account, knownUntilMs } of costs) {
    if (knownUntilMs > 0) metrics.set('ebb_usage_age_seconds', { account }, (nowMs - knownUntilMs) / 1000);
  }
}

/** Exports the sums, in place of the series before. */
export function exportUsageMetrics(telemetry: Telemetry, costs: readonly MonthCosts[]): void {
  const { metrics } = telemetry;
  clearUsageMetrics(telemetry);
  const sums = new Map<string, Sums>();
  const unknown = new Map<string, number>();
  for (const { account, lines, owners, counterfactual } of costs) {
    exportCounterfactual(telemetry, account, counterfactual ?? []);
    for (const { projectId: project, name: owner, cuSeconds, unknownHours } of lines) {
      metrics.set('ebb_usage_month_cu_seconds', { account, project, owner }, cuSeconds);
      unknown.set(account, (unknown.get(account) ?? 0) + unknownHours);
    }
    for (const one of owners) {
      const key = `${account} ${one.name}`;
      sums.set(key, addOwner(sums.get(key) ?? { account, owner: one.name, anomalyCuHours: 0, projected: [] }, one));
    }
  }
  for (const [account, hours] of unknown) metrics.set('ebb_usage_unknown_hours', { account }, hours);
  for (const one of sums.values()) exportOwner(telemetry, one);
}

function exportCounterfactual({ metrics }: Telemetry, account: string, owners: readonly Counterfactual[]): void {
  for (const { owner, saved } of owners) {
    for (const bound of ['low', 'mid', 'high'] as const) {
      metrics.set('ebb_counterfactual_saved_cu_seconds', { account, owner, bound }, saved.cuSeconds[bound]);
    }
  }
}

function exportOwner({ metrics }: Telemetry, { account, owner, usd, projected, anomalyCuHours }: Sums): void {
  if (usd !== undefined) metrics.set('ebb_cost_month_to_date_usd', { account, owner }, usd);
  const ranges = projected.filter((range) => range !== undefined);
  // A sum over a part of the organizations would be misleading.
  for (const [bound, value] of ranges.length === projected.length ? Object.entries(sumOfProjections(ranges)) : []) {
    metrics.set('ebb_cost_month_projected_usd', { account, owner, bound }, value);
  }
  metrics.set('ebb_spend_anomaly_cu_hours', { account, owner }, anomalyCuHours);
}

/** An owner's sums over the organizations of an account. */
interface Sums {
  account: string;
  owner: string;
  /** CU-hours beyond the usual, by yesterday's anomalies. */
  anomalyCuHours: number;
  usd?: number;
  /** One for each organization. */
  projected: (Projection | undefined)[];
}

function addOwner(sums: Sums, { usd, projectedUsd, anomaly }: OwnerCosts): Sums {
  return {
    ...sums,
    ...(usd !== undefined && { usd: (sums.usd ?? 0) + usd }),
    projected: [...sums.projected, projectedUsd],
    anomalyCuHours: sums.anomalyCuHours + (anomaly ? (anomaly.used - anomaly.ordinary) / 3600 : 0),
  };
}

/** Logs each anomaly once; `logged` remembers them. */
export function logAnomalies({ log }: Telemetry, costs: readonly MonthCosts[], logged: Set<string>): void {
  for (const { account, organization, owners } of costs) {
    for (const { name: owner, anomaly } of owners) {
      if (!anomaly) continue;
      const day = isoInstant(anomaly.dayMs).slice(0, 10);
      const key = `${day} ${account} ${organization} ${owner}`;
      if (logged.has(key)) continue;
      logged.add(key);
      const [used, ordinary] = [anomaly.used, anomaly.ordinary].map((cuSeconds) => toHundredths(cuSeconds / 3600));
      log.warn(
        { event: 'ebb.spend_anomaly', account, organization, owner, day, cu_hours: used, ordinary_cu_hours: ordinary },
        `${owner} used ${used} CU-hours on ${day}: usually at most ${ordinary} on that weekday`,
      );
    }
  }
}
