/** The waves of `ready: true` in forecasts of a fleet. */
import { limitsForChanges, withWavesBetween } from '../../domain/evaluate/ready-waves.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import { limitsOf } from '../../domain/rate-budget/limits.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';

/** Waves are computed for window starts within this time. Raises for later ones begin 3 minutes before the start, as the forecast assumes. */
const LONGEST_MS = 8 * DAY_MS;

export interface FleetWavesInput {
  /** The whole fleet, even if a part of it is shown. */
  subjects: readonly ForecastSubject[];
  readyWaves: readonly ReadyWaves[];
  settings: Pick<Settings, 'apiRequestsPerMinute' | 'apiReserve' | 'accounts'>;
  span: Span;
}

/** Adds the waves of the first eight days: the waves that daemons have already fixed, otherwise the waves that the fleet needs. */
export function withFleetWaves(
  policies: CompiledPolicies,
  { subjects, readyWaves, settings, span: { fromMs, toMs } }: FleetWavesInput,
): CompiledPolicies {
  const limits = limitsOf(settings.apiRequestsPerMinute, settings.apiReserve);
  const computes = subjects.map(({ compute }) => compute);
  return withWavesBetween(
    {
      policies,
      subjects: subjects.map(({ baseline, ...subject }) => ({ ...subject, baseline })),
      fixed: readyWaves,
      limitsOf: limitsForChanges(limits, computes),
      verified: new Map(
        computes.map(({ account }) => [account, accountFor(settings.accounts, account)?.verified ?? {}]),
      ),
    },
    { fromMs, toMs: Math.min(toMs, fromMs + LONGEST_MS) },
  );
}

export function readyWavesJson(all: readonly ReadyWaves[], span: Span) {
  return within(all, span).map(({ account, opensAtMs, waves }) => ({
    account,
    opens_at: isoInstant(opensAtMs),
    waves: waves.map(({ leadMs, computes }) => ({ begins_at: isoInstant(opensAtMs - leadMs), computes })),
  }));
}

/** A line for each opening that needs several waves. */
export function waveLines(all: readonly ReadyWaves[], span: Span): string[] {
  const openings = within(all, span).filter(({ waves }) => waves.length > 1);
  return openings.map(({ account, opensAtMs, waves }) => {
    const each = waves.map(({ leadMs, computes }) => `${computes} from ${timeOf(opensAtMs - leadMs)}`);
    return `Ready at ${isoInstant(opensAtMs)} (account ${account}), in waves of 15 s: ${each.join(', ')}.`;
  });
}

function within(all: readonly ReadyWaves[], { fromMs, toMs }: Span): ReadyWaves[] {
  const shown = all.filter(({ opensAtMs }) => opensAtMs > fromMs && opensAtMs <= toMs);
  return shown.toSorted((a, b) => a.opensAtMs - b.opensAtMs);
}

function timeOf(ms: number): string {
  return isoInstant(ms).slice(11);
}
