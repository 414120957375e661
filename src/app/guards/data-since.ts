import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { SourceAnswer } from '../../ports/connections.ts';
import type { SeriesSource } from '../../ports/guards.ts';

const MAX_POINTS = 1000;
const STEP_MS = 5 * MINUTE_MS;

/** When the first samples in a period were taken, milliseconds since the epoch; undefined if there are none. */
export interface DataSince {
  /** The first sample of the guard's query. */
  ownMs: number | undefined;
  /** The first sample of any series: Prometheus stores `up` for each of its targets. */
  anyMs: number | undefined;
}

/** Finds the first samples in a period. The error is at most a thousandth of the period, rounded up to five minutes. */
export async function dataSince(
  source: SeriesSource,
  { query }: Pick<GuardPolicy, 'query'>,
  { fromMs, toMs, signal }: { fromMs: number; toMs: number; signal: AbortSignal },
): Promise<SourceAnswer<DataSince>> {
  const stepMs = Math.ceil((toMs - fromMs) / MAX_POINTS / STEP_MS) * STEP_MS;
  const range = { fromMs: fromMs - (fromMs % stepMs), toMs, stepMs };
  // A comment at the end of the query must not swallow the bracket.
  const own = await source.range(`count(${query}\n)`, range, signal);
  if (!own.ok) return own;
  const any = await source.range('count(up)', range, signal);
  if (!any.ok) return any;
  const [ownMs, anyMs] = [own, any].map(({ value }) => value[0]?.samples[0]?.atMs);
  return { ok: true, value: { ownMs, anyMs } };
}
