import type { Span } from '../../domain/forecast/forecast.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { Outlook } from './outlook.ts';
import { type Range, times } from './sums.ts';

/** As programs read it: instants in UTC, sizes in CU, timeouts in seconds. */
export function forecastJson({ fromMs, toMs }: Span, outlooks: readonly Outlook[]) {
  return {
    from: isoInstant(fromMs),
    to: isoInstant(toMs),
    computes: outlooks.map(({ compute, segments, cuHours, without, price }) => ({
      project_id: compute.projectId,
      compute_id: compute.computeId,
      segments: segments.map((segment) => ({
        from: isoInstant(segment.fromMs),
        to: isoInstant(segment.toMs),
        min_cu: segment.minCu,
        max_cu: segment.maxCu,
        suspend_timeout_seconds: segment.suspendTimeoutSeconds,
        policies: segment.policies,
      })),
      cu_hours: rounded(cuHours),
      cu_hours_without: rounded(without),
      ...(price !== undefined && { usd: rounded(times(cuHours, price)) }),
    })),
  };
}

/** Without the noise of floating point. */
export function rounded({ low, high }: Range): Range {
  return { low: Math.round(low * 1e4) / 1e4, high: Math.round(high * 1e4) / 1e4 };
}
