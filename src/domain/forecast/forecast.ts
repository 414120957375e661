/** Forecasts the settings of computes, and what they may cost, if policies stay as they are and nobody interferes. */

import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  hasSettings,
  isRaise,
  type Size,
  sameSize,
  settingsOf,
  sizeOf,
} from '../compute/compute.ts';
import { cuHours, possibleCuSeconds } from '../compute/cost.ts';
import { type Decision, decide } from '../decide/decide.ts';
import { isBeyond } from '../decide/stages/limits.ts';
import type { Range } from '../estimate.ts';
import { settingsJson } from '../evaluate/fleet-plan-json.ts';
import type { Freeze } from '../overrides/freezes.ts';
import type { Hold } from '../overrides/holds.ts';
import { keepingHold } from '../plan/gates/people.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { Policy } from '../policy/policy.ts';
import type { Span } from '../time/span.ts';
import { isoInstant } from '../time/units.ts';
import { type ForecastSubject, freezesOf, groupComputes, type PolicyGroup } from './compute-groups.ts';

/** A time span in which no value changes. */
export interface Segment extends ComputeSettings, Span {
  /** The policies that decided the values, in the order in which they first did; empty where nothing sets a value. */
  policies: readonly string[];
}

export function segmentJson({ fromMs, toMs, policies, ...settings }: Segment) {
  return { from: isoInstant(fromMs), to: isoInstant(toMs), ...settingsJson(settings), policies: [...policies] };
}

/** A change of the size at the instant at which it is wanted. */
export interface Resize {
  /** Milliseconds since the epoch. */
  atMs: number;
  size: Size;
  /** The deciding policy; absent for a person's hold. */
  policy?: Pick<Policy, 'name' | 'priority' | 'disruption'> | undefined;
}

/** A time span in which sizes are not changed; its end is infinite until the walk reaches it. */
interface FrozenSpan extends Span {
  allowRaise: boolean;
}

export interface Forecast {
  /** The segments of the requested time, without gaps; neighbours differ in a value. */
  segments: readonly Segment[];
  cuHours: Range;
  /** All changes of the size since the instant of the facts, including those before the requested time. */
  resizes: readonly Resize[];
  /** The spans in which the size must not be changed, since the instant of the facts. */
  frozen: readonly FrozenSpan[];
}

/** The requested time span of a forecast, and the instant of its facts. */
export interface ForecastRange extends Span {
  /** When the computes' settings were read: changes are forecast from then on. Absent or after `fromMs`: `fromMs`. */
  knownAtMs?: number | undefined;
}

const EMPTY_FORECAST: Forecast = { segments: [], cuHours: { low: 0, high: 0 }, resizes: [], frozen: [] };

/** The forecast of one compute; {@link forecastFleet} is faster for several. */
export function forecast(input: ForecastSubject & ForecastRange & { policies: CompiledPolicies }): Forecast {
  const { policies, fromMs, toMs, knownAtMs, ...subject } = input;
  return forecastFleet({ policies, subjects: [subject], fromMs, toMs, knownAtMs })[0] ?? EMPTY_FORECAST;
}

/**
 * Forecasts many computes, in the order of the input. Goes from one change of a policy to the next, not by time steps. A field that nothing sets
 * keeps its value. The forecast of a day is the same for every requested span that contains it. An empty span has no segments.
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
  const walks = classes.map(({ subject }) => startWalk(policies, subject));
  const walksByInstant = new Map(instants.map((instantMs) => [instantMs, new Set(walks)]));
  for (const [index, walk] of walks.entries()) {
    for (const instantMs of classes[index]?.ownInstants ?? []) {
      walksByInstant.set(instantMs, (walksByInstant.get(instantMs) ?? new Set()).add(walk));
    }
  }
  for (const [instantMs, steppingWalks] of [...walksByInstant].sort(([a], [b]) => a - b)) {
    for (const walk of steppingWalks) walk.step(instantMs);
  }
  return walks.map((walk, index) => ({
    segments: walk.segmentsIn(span),
    resizes: walk.resizes,
    frozen: walk.frozen,
    members: classes[index]?.members ?? [],
  }));
}

/** The possible usage of a compute whose settings don't change, in CU-hours. */
export function unchangedCuHours(settings: ComputeSettings & { disabled?: boolean }, span: Span): Range {
  return settings.disabled ? EMPTY_FORECAST.cuHours : cuHoursOf([{ ...settings, ...span }]);
}

/** The possible usage in segments, in CU-hours. */
export function cuHoursOf(segments: readonly (ComputeSettings & Span)[]): Range {
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

/** The spans in which the values of two forecasts differ, ascending. Different policies with equal values don't count. */
export function differencesOf(before: readonly Segment[], after: readonly Segment[]): Difference[] {
  const differences: Difference[] = [];
  let first = 0;
  for (const segmentBefore of before) {
    // Segments that end before this one begins can't overlap later ones either, so they are skipped for good.
    while (after[first] && (after[first]?.toMs ?? 0) <= segmentBefore.fromMs) first += 1;
    for (let index = first; (after[index]?.fromMs ?? segmentBefore.toMs) < segmentBefore.toMs; index += 1) {
      const segment = after[index];
      if (!segment || hasSettings(segmentBefore, segment)) continue;
      const fromMs = Math.max(segmentBefore.fromMs, segment.fromMs);
      const toMs = Math.min(segmentBefore.toMs, segment.toMs);
      differences.push({ fromMs, toMs, before: segmentBefore, after: segment });
    }
  }
  return differences;
}

/** Simulates a compute over time, from its present settings on. A field that nothing sets keeps its last value. */
function startWalk(policies: CompiledPolicies, { holds, ...subject }: ForecastSubject) {
  const { baseline = settingsOf(subject.compute), trials, floors, respected } = subject;
  const freezes = freezesOf(subject);
  // Changed in place, since selections are cached by the identity of this object and do not depend on settings.
  const compute = { ...subject.compute };
  const segments: (ComputeSettings & { fromMs: number; deciders: Set<string> })[] = [];
  const resizes: Resize[] = [];
  const frozen: FrozenSpan[] = [];
  return {
    /** The changes so far, ascending. */
    resizes,
    /** The frozen spans so far, by freezes or holds, ascending. */
    frozen,
    /** Advances to an instant at which a decision may change; instants must ascend. */
    step(instantMs: number): void {
      const decision = decide({ policies, compute, baseline, trials, floors, instantMs, holds });
      const byPeople = freezes.filter(({ expiresAtMs }) => instantMs < expiresAtMs);
      const freeze = freezeOf(decision, byPeople);
      updateFrozen(frozen, keepingHold(decision.holds, 'size') ? { allowRaise: false } : freeze, instantMs);
      const before = sizeOf(compute);
      const isRespected = (group: FieldGroup) => instantMs < (respected?.[group] ?? Number.NEGATIVE_INFINITY);
      Object.assign(compute, writtenChanges(decision, compute, { freeze, isRespected }));
      if (!sameSize(compute, before)) resizes.push(resizeOf(decision, compute, instantMs));
      const last = segments.at(-1);
      const deciders = last && hasSettings(last, compute) ? last.deciders : new Set<string>();
      for (const name of decidersOf(decision, byPeople)) deciders.add(name);
      if (deciders !== last?.deciders) segments.push({ ...settingsOf(compute), fromMs: instantMs, deciders });
    },
    /** The segments so far, cut to this span. */
    segmentsIn({ fromMs, toMs }: Span): Segment[] {
      const first = segments.findLastIndex((segment) => segment.fromMs <= fromMs);
      return segments.slice(first).map(({ deciders, ...segment }, index) => ({
        ...segment,
        fromMs: Math.max(segment.fromMs, fromMs),
        toMs: segments[first + index + 1]?.fromMs ?? toMs,
        policies: [...deciders],
      }));
    },
  };
}

/**
 * The changes that would be written. A field that a hold keeps, or whose manual change is respected, does not change. During a freeze only
 * allowed raises are written.
 */
function writtenChanges(
  { enforced, hardLimits, holds }: Decision,
  compute: Compute,
  { freeze, isRespected }: { freeze: ReturnType<typeof freezeOf>; isRespected(group: FieldGroup): boolean },
): Partial<ComputeSettings> {
  const isKept = (group: FieldGroup) =>
    keepingHold(holds, group) !== undefined ||
    (isRespected(group) && !hardLimits.some((limits) => isBeyond(limits, group, compute)));
  const size = isKept('size') ? null : enforced.size;
  const seconds = isKept('suspend_timeout') ? null : enforced.suspendTimeoutSeconds;
  if (freeze) return size !== null && freeze.allowRaise && isRaise(compute, size) ? size : {};
  return { ...size, ...(seconds !== null && { suspendTimeoutSeconds: seconds }) };
}

function freezeOf({ freezes }: Decision, byPeople: readonly Freeze[]): Pick<FrozenSpan, 'allowRaise'> | undefined {
  const all = [...freezes, ...byPeople];
  return all.length > 0 ? { allowRaise: all.every(({ allowRaise }) => allowRaise) } : undefined;
}

/** Ends or begins a frozen span when the freeze changes. */
function updateFrozen(frozen: FrozenSpan[], freeze: ReturnType<typeof freezeOf>, instantMs: number): void {
  const last = frozen.at(-1);
  const open = last?.toMs === Number.POSITIVE_INFINITY ? last : undefined;
  if (open?.allowRaise === freeze?.allowRaise) return;
  if (open) open.toMs = instantMs;
  if (freeze) frozen.push({ ...freeze, fromMs: instantMs, toMs: Number.POSITIVE_INFINITY });
}

function resizeOf({ enforcedDeciders }: Decision, compute: Compute, atMs: number): Resize {
  return { atMs, size: sizeOf(compute), policy: enforcedDeciders.size?.policy };
}

function decidersOf({ enforcedDeciders, freezes, holds }: Decision, byPeople: readonly Freeze[]): string[] {
  const freezing = [...byPeople.map(({ owner }) => `freeze by ${owner}`), ...freezes.map(({ policy }) => policy.name)];
  const deciding = FIELD_GROUPS.flatMap((group) => {
    const keeping = keepingHold(holds, group);
    if (keeping) return [nameOf(keeping)];
    const step = freezing.length === 0 ? enforcedDeciders[group] : undefined;
    if (step?.policy) return [step.policy.name];
    return step?.hold ? [nameOf(step.hold)] : [];
  });
  return [...deciding, ...freezing];
}

function nameOf({ owner }: Hold): string {
  return `hold by ${owner}`;
}
