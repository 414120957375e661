/** Forecasts the settings of computes, and what they may cost, if policies stay as they are and nobody interferes. */

import { type ComputeSettings, hasSettings } from '../compute/compute.ts';
import { type CuSeconds, cuHours, possibleCuSeconds } from '../compute/cost.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { Span } from '../time/span.ts';
import { type ForecastSubject, groupComputes, type PolicyGroup } from './compute-groups.ts';
import { type FrozenSpan, type Resize, type Segment, startWalk } from './walk.ts';

export interface Forecast {
  /** The segments of the requested time, without gaps; neighbours differ in a value. */
  segments: readonly Segment[];
  cuHours: CuSeconds;
  /** All changes of the size since the instant of the facts, including those before the requested time. */
  resizes: readonly Resize[];
  /** The spans in which the size must not be changed, since the instant of the facts. */
  frozen: readonly FrozenSpan[];
}

/** The requested time span of a forecast, and the instant of its facts. */
export interface ForecastRange extends Span {
  /** When the computes' settings were read: changes are forecast from then on. Absent or later than `fromMs`: `fromMs`. */
  knownAtMs?: number | undefined;
}

const EMPTY_FORECAST: Forecast = { segments: [], cuHours: { low: 0, high: 0 }, resizes: [], frozen: [] };

/** The forecast of one compute; {@link forecastFleet} returns more, and is faster for several. */
export function forecast(input: ForecastSubject & ForecastRange & { policies: CompiledPolicies }): Forecast {
  const { policies, fromMs, toMs, knownAtMs, ...subject } = input;
  return forecastFleet({ policies, subjects: [subject], fromMs, toMs, knownAtMs })[0] ?? EMPTY_FORECAST;
}

/**
 * Forecasts many computes, in the order of the input. Goes from one change of a policy to the next, not by time steps. A field that
 * nothing sets keeps its value. The forecast of a day does not depend on the requested span around it. An empty span has no segments.
 */
export function forecastFleet(
  input: ForecastRange & { policies: CompiledPolicies; subjects: readonly ForecastSubject[] },
): Forecast[] {
  const { subjects, fromMs, toMs, knownAtMs = fromMs } = input;
  const forecasts = subjects.map(() => EMPTY_FORECAST);
  if (toMs <= fromMs) return forecasts;
  for (const group of groupComputes({ ...input, fromMs: Math.min(knownAtMs, fromMs) })) {
    for (const { segments, members, ...walked } of walkTogether(group, { fromMs, toMs })) {
      const cuHours = cuHoursOf(segments);
      for (const index of members) {
        // A disabled compute can't be woken by anyone.
        const disabled = subjects[index]?.compute.disabled === true;
        forecasts[index] = { segments, cuHours: disabled ? EMPTY_FORECAST.cuHours : cuHours, ...walked };
      }
    }
  }
  return forecasts;
}

/** Walks all computes of a group together from instant to instant, so that cached directives are shared. */
function walkTogether({ policies, instants, classes }: PolicyGroup, span: Span) {
  const walks = classes.map(({ subject, ownInstants }) => ({ walk: startWalk(policies, subject), ownInstants }));
  const groupInstants = new Set(instants);
  const allInstants = new Set([...instants, ...classes.flatMap(({ ownInstants }) => ownInstants)]);
  for (const instantMs of [...allInstants].sort((a, b) => a - b)) {
    for (const { walk, ownInstants } of walks) {
      if (groupInstants.has(instantMs) || ownInstants.includes(instantMs)) walk.step(instantMs);
    }
  }
  return walks.map(({ walk }, index) => ({
    segments: walk.segmentsIn(span),
    resizes: walk.resizes,
    frozen: walk.frozen,
    members: classes[index]?.members ?? [],
  }));
}

/** The possible usage of a compute whose settings don't change, in CU-hours. */
export function unchangedCuHours(settings: ComputeSettings & { disabled?: boolean }, span: Span): CuSeconds {
  return settings.disabled ? EMPTY_FORECAST.cuHours : cuHoursOf([{ ...settings, ...span }]);
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

/** A time span in which two forecasts of a compute differ, each with constant values. */
export interface Difference extends Span {
  before: ComputeSettings & { policies: readonly string[] };
  after: ComputeSettings & { policies: readonly string[] };
}

/** The spans in which the values of two forecasts differ, ascending. Different policies with the same values are no difference. */
export function differencesOf(before: readonly Segment[], after: readonly Segment[]): Difference[] {
  const differences: Difference[] = [];
  let first = 0;
  for (const segmentBefore of before) {
    // Skip segments that end before this one begins; they cannot overlap later ones either.
    while (after[first] && (after[first]?.toMs ?? 0) <= segmentBefore.fromMs) first += 1;
    for (let index = first; (after[index]?.fromMs ?? segmentBefore.toMs) < segmentBefore.toMs; index += 1) {
      const segment = after[index];
      if (!segment || hasSettings(segmentBefore, segment)) continue;
      const fromMs = Math.max(segmentBefore.fromMs, segment.fromMs);
      differences.push({
        fromMs,
        toMs: Math.min(segmentBefore.toMs, segment.toMs),
        before: segmentBefore,
        after: segment,
      });
    }
  }
  return differences;
}
