/** In which waves herds become ready, as a forecast shows it. */
import { limitsBesideLists, withWavesBetween } from '../../domain/evaluate/ready-waves.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import { limitsOf } from '../../domain/rate-budget/limits.ts';
import type { Span } from '../../domain/time/span.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';

/** Of later starts of windows the waves are not worked out; raises then begin 3 minutes before. Milliseconds. */
const LONGEST_MS = 8 * 24 * 60 * 60_000;

export interface KnownHerd {
  /** The whole fleet, whatever is shown of it. */
  subjects: readonly ForecastSubject[];
  readyWaves: readonly ReadyWaves[];
  settings: Pick<Settings, 'apiRequestsPerMinute' | 'apiReserve' | 'accounts'>;
  span: Span;
}

/** The policies with the waves of the first eight days of the time: those that daemons have fixed, and else those that the fleet needs. */
export function withHerdWaves(
  policies: CompiledPolicies,
  { subjects, readyWaves, settings, span: { fromMs, toMs } }: KnownHerd,
): CompiledPolicies {
  const limits = limitsOf(settings.apiRequestsPerMinute, settings.apiReserve);
  const computes = subjects.map(({ compute }) => compute);
  const herd = subjects.map(({ baseline, ...subject }) => ({ ...subject, baseline }));
  return withWavesBetween(
    {
      ...{ policies, herd, fixed: readyWaves, limitsOf: limitsBesideLists(limits, computes) },
      verified: new Map(
        computes.map(({ account }) => [account, accountFor(settings.accounts, account)?.verified ?? {}]),
      ),
    },
    { fromMs, toMs: Math.min(toMs, fromMs + LONGEST_MS) },
  );
}

/** Those that are ready within the time. */
export function readyWavesJson(known: readonly ReadyWaves[], span: Span) {
  return within(known, span).map(({ account, opensAtMs, waves }) => ({
    account,
    opens_at: isoInstant(opensAtMs),
    waves: waves.map(({ leadMs, computes }) => ({ begins_at: isoInstant(opensAtMs - leadMs), computes })),
  }));
}

/** A line for each herd for which one wave is not enough. */
export function waveLines(known: readonly ReadyWaves[], span: Span): string[] {
  const herds = within(known, span).filter(({ waves }) => waves.length > 1);
  return herds.map(({ account, opensAtMs, waves }) => {
    const each = waves.map(({ leadMs, computes }) => `${computes} from ${timeOf(opensAtMs - leadMs)}`);
    return `Ready at ${isoInstant(opensAtMs)} (account ${account}), in waves of 15 s: ${each.join(', ')}.`;
  });
}

function within(known: readonly ReadyWaves[], { fromMs, toMs }: Span): ReadyWaves[] {
  const shown = known.filter(({ opensAtMs }) => opensAtMs > fromMs && opensAtMs <= toMs);
  return shown.toSorted((a, b) => a.opensAtMs - b.opensAtMs);
}

function timeOf(ms: number): string {
  return isoInstant(ms).slice(11);
}
