/** Forecasts the settings of computes, and what they may cost, if policies stay as they are and nobody interferes. */

import { type ComputeSettings, hasSettings } from '../compute/compute.ts';
import { type CuSeconds, cuHours, possibleCuSeconds } from '../compute/cost.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { type Company, type ForecastSubject, sortAlike } from './alike.ts';
import { type FrozenSpan, type Resize, type Segment, startWalk } from './walk.ts';

export interface Forecast {
  /** They tile the time asked for; neighbours differ in a value. */
  segments: readonly Segment[];
  cuHours: CuSeconds;
  /** Every change of the size since the instant of the facts, also before the time asked for. */
  resizes: readonly Resize[];
  /** The spans in which its size must not be changed, from the same instant on. */
  frozen: readonly FrozenSpan[];
}

/** A stretch of time, milliseconds since the epoch. */
export interface Span {
  fromMs: number;
  /** Up to but not including. */
  toMs: number;
}

/** The time range of a forecast, and the instant of its facts. */
export interface Asked extends Span {
  /** The instant of the computes' settings: changes are forecast from then on. `fromMs` if absent or later. */
  knownAtMs?: number | undefined;
}

const NOTHING: Forecast = { segments: [], cuHours: { low: 0, high: 0 }, resizes: [], frozen: [] };

/** The forecast of one compute; {@link forecastFleet} returns more, and is faster for several. */
export function forecast(input: ForecastSubject & Asked & { policies: CompiledPolicies }): Forecast {
  const { policies, fromMs, toMs, knownAtMs, ...subject } = input;
  return forecastFleet({ policies, subjects: [subject], fromMs, toMs, knownAtMs })[0] ?? NOTHING;
}

/**
 * Forecasts of many computes, in their order: from one change of a policy to the next, never by steps of time. A field that nothing sets
 * stays as it is, from the settings at the instant of the facts. The shown range makes no difference: a day has the same forecast from
 * whichever day. An empty span has no segments.
 */
export function forecastFleet(
  input: Asked & { policies: CompiledPolicies; subjects: readonly ForecastSubject[] },
): Forecast[] {
  const { subjects, fromMs, toMs, knownAtMs = fromMs } = input;
  const forecasts = subjects.map(() => NOTHING);
  if (toMs <= fromMs) return forecasts;
  for (const company of sortAlike({ ...input, fromMs: Math.min(knownAtMs, fromMs) })) {
    for (const { segments, members, ...walked } of walkTogether(company, { fromMs, toMs })) {
      const used = cuHoursOf(segments);
      for (const index of members) {
        // A disabled compute can't be woken by anyone.
        const disabled = subjects[index]?.compute.disabled === true;
        forecasts[index] = { segments, cuHours: disabled ? NOTHING.cuHours : used, ...walked };
      }
    }
  }
  return forecasts;
}

/** Walks all computes together from instant to instant, so that the wishes at an instant are computed once. */
function walkTogether({ policies, instants, alike }: Company, span: Span) {
  const walks = alike.map(({ subject, ownInstants }) => ({ walk: startWalk(policies, subject), ownInstants }));
  const common = new Set(instants);
  const all = new Set([...instants, ...alike.flatMap(({ ownInstants }) => ownInstants)]);
  for (const instantMs of [...all].sort((a, b) => a - b)) {
    for (const { walk, ownInstants } of walks) {
      if (common.has(instantMs) || ownInstants.includes(instantMs)) walk.step(instantMs);
    }
  }
  return walks.map(({ walk }, index) => ({
    segments: walk.segmentsIn(span),
    resizes: walk.resizes,
    frozen: walk.frozen,
    members: alike[index]?.members ?? [],
  }));
}

/** The possible usage of a compute whose settings stay as they are, as without ebb. In CU-hours. */
export function unchangedUse(settings: ComputeSettings & { disabled?: boolean }, span: Span): CuSeconds {
  return settings.disabled ? NOTHING.cuHours : cuHoursOf([{ ...settings, ...span }]);
}

/** The possible usage in segments, in CU-hours. */
export function cuHoursOf(segments: readonly (ComputeSettings & Span)[]): CuSeconds {
  const use = { low: 0, high: 0 };
  for (const segment of segments) {
    const { low, high } = possibleCuSeconds(segment, (segment.toMs - segment.fromMs) / 1000);
    use.low += low;
    use.high += high;
  }
  return cuHours(use);
}

/** A stretch of time in which two forecasts of a compute differ, each with the same values all along. */
export interface Difference {
  fromMs: number;
  /** Up to but not including. */
  toMs: number;
  before: ComputeSettings & { policies: readonly string[] };
  after: ComputeSettings & { policies: readonly string[] };
}

/** The spans in which two forecasts differ in a value, ascending. A different policy with the same value is no difference. */
export function differencesOf(before: readonly Segment[], after: readonly Segment[]): Difference[] {
  const found: Difference[] = [];
  let place = 0;
  for (const old of before) {
    // The one in which `old` begins was the last that the one before it overlapped.
    while (after[place] && (after[place]?.toMs ?? 0) <= old.fromMs) place += 1;
    for (let index = place; (after[index]?.fromMs ?? old.toMs) < old.toMs; index += 1) {
      const segment = after[index];
      if (!segment || hasSettings(old, segment)) continue;
      const fromMs = Math.max(old.fromMs, segment.fromMs);
      found.push({ fromMs, toMs: Math.min(old.toMs, segment.toMs), before: old, after: segment });
    }
  }
  return found;
}
