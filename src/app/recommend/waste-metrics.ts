/** Series of what findings would save a month. Only the leader has them. */
import type { Range } from '../../domain/awake/causes.ts';
import type { MetricLabels } from '../../ports/metrics.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { ProjectFindings } from './stored-findings.ts';

type Labels = Omit<MetricLabels<'ebb_waste_month_cu_hours'>, 'bound'>;

interface Total {
  labels: Labels;
  cuHours: Range;
  /** Of what has a price; undefined where nothing has. */
  usd: Range | undefined;
}

/** What the findings of some computes add up to. */
export type WasteTotals = readonly Total[];

/** By owner, kind of finding and figure. Dollars only where a price is known. */
export function totalsOf({ account, findings }: ProjectFindings): WasteTotals {
  return sumOf(
    findings.map(({ owner, finding, figure, saves }) => ({
      labels: { account, owner, finding, figure },
      cuHours: saves.cu_hours_month,
      usd: saves.usd_month ?? undefined,
    })),
  );
}

export function clearWasteMetrics({ metrics }: Telemetry): void {
  metrics.clear('ebb_waste_month_cu_hours');
  metrics.clear('ebb_waste_month_usd');
}

/** Shows the sums of all projects. */
export function showWasteMetrics(telemetry: Telemetry, projects: readonly WasteTotals[]): void {
  const { metrics } = telemetry;
  clearWasteMetrics(telemetry);
  for (const { labels, cuHours, usd } of sumOf(projects.flat())) {
    for (const bound of ['low', 'high'] as const) {
      metrics.set('ebb_waste_month_cu_hours', { ...labels, bound }, cuHours[bound]);
      if (usd) metrics.set('ebb_waste_month_usd', { ...labels, bound }, usd[bound]);
    }
  }
}

function sumOf(parts: WasteTotals): WasteTotals {
  const sums = new Map<string, Total>();
  for (const { labels, cuHours, usd } of parts) {
    const key = JSON.stringify(labels);
    const sum = sums.get(key);
    sums.set(key, { labels, cuHours: plus(sum?.cuHours, cuHours), usd: usd ? plus(sum?.usd, usd) : sum?.usd });
  }
  return [...sums.values()];
}

function plus(sum: Range | undefined, { low, high }: Range): Range {
  return { low: (sum?.low ?? 0) + low, high: (sum?.high ?? 0) + high };
}
