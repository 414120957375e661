import pLimit from 'p-limit';
import { createPrometheusRecord, type RangeOfTime } from '../adapters/connections/prometheus-range.ts';
import type { Result } from '../common/result.ts';
import type { RecordedCount } from '../domain/backtest/recording.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { PrometheusSource } from '../domain/policy/policy.ts';
import type { Settings } from '../settings/settings.ts';
import { readSecret } from './connections.ts';

const COMPUTES_AT_A_TIME = 4;

/**
 * Reads the past connections of computes, by id, from the Prometheus of a source; or one line that says why not. A compute without data
 * has no counts.
 */
export async function recordedByPrometheus(options: {
  settings: Settings;
  source: PrometheusSource;
  computes: readonly Compute[];
  range: RangeOfTime;
}): Promise<Result<ReadonlyMap<string, readonly RecordedCount[]>>> {
  const { settings, source, computes, range } = options;
  const { url, query, token, file, name, refused } = source;
  if (refused !== undefined) return { ok: false, problem: `source ${name}: ${refused}` };
  const readToken = token && (() => readSecret(token, file, { settings, hide: () => {} }));
  const record = createPrometheusRecord({ url, query, readToken });
  const counts = new Map<string, readonly RecordedCount[]>();
  const problems: string[] = [];
  try {
    await pLimit(COMPUTES_AT_A_TIME).map(computes, async (compute) => {
      const read = problems.length > 0 ? undefined : await record.of(compute, range);
      if (read?.ok) counts.set(compute.computeId, read.value);
      else if (read) problems.push(`source ${name}, ${compute.computeId}: ${read.error.message} (${read.error.code})`);
    });
  } finally {
    await record.close();
  }
  const [problem] = problems;
  return problem === undefined ? { ok: true, value: counts } : { ok: false, problem };
}
