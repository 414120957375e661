import { getOrAdd } from '../../domain/grouping.ts';
import { lowerBound } from '../../domain/sorted.ts';
import type { Calendar, CronSwitch, TimeSpec } from '../../domain/time/time-spec.ts';
import { coverWholeWeek } from '../../domain/time/windows/coverage.ts';
import { firingAfter } from '../../domain/time/windows/cron-firings.ts';
import { earliest } from '../../domain/time/windows/opening.ts';
import { isOpenAt, nextChangeOfAny } from '../../domain/time/windows.ts';
import type { StepLimit } from './step-limit.ts';

/** The horizon of lint: [nowMs, endMs). */
export interface Period {
  nowMs: number;
  endMs: number;
}

export interface OpeningsCache {
  /** The times at which any of the windows is open. */
  of(specs: readonly TimeSpec[]): Openings;
}

/** Evaluates equal windows once, whatever their policy. */
export function createOpeningsCache(period: Period, limit: StepLimit): OpeningsCache {
  const byKey = new Map<string, Openings>();
  const calendarIds = new Map<Calendar, string>();
  const keyOf = (_name: string, value: unknown) => (isCalendar(value) ? idOf(calendarIds, value) : value);
  const bySpec = new WeakMap<TimeSpec, Openings>();
  const openingsOf = (spec: TimeSpec): Openings =>
    getOrAdd(bySpec, spec, () =>
      getOrAdd(byKey, JSON.stringify(spec, keyOf), () => createOpenings(spec, period, limit)),
    );
  return {
    of(specs) {
      if (coverWholeWeek(specs)) return ALWAYS_OPEN;
      const [only, ...rest] = specs.map(openingsOf);
      return only && rest.length === 0 ? only : unionOf(only ? [only, ...rest] : [], period, limit);
    },
  };
}

/** The openings of one window, evaluated on demand. */
function createOpenings(spec: TimeSpec, { nowMs, endMs }: Period, limit: StepLimit): Openings {
  const starts: number[] = [];
  const ends: number[] = [];
  const steps = stepsOf(spec, nowMs);
  const change = (atMs: number) => (limit.spend(steps) ? nextChangeOfAny([spec], atMs) : undefined);
  let nextStartMs: number | undefined;
  let hasBegun = false;

  /** Evaluates openings until one starts after an instant, or none is left in the period. */
  function findUntil(instantMs: number): void {
    if (!hasBegun) nextStartMs = isOpenAt(spec, nowMs) ? nowMs : change(nowMs);
    hasBegun = true;
    while (nextStartMs !== undefined && nextStartMs < endMs && (starts.at(-1) ?? -1) <= instantMs) {
      const closesMs = change(nextStartMs) ?? Number.POSITIVE_INFINITY;
      starts.push(nextStartMs);
      ends.push(closesMs);
      nextStartMs = closesMs < endMs ? change(closesMs) : undefined;
    }
  }

  /** Index of the last opening that starts at or before an instant; −1 if there is none. */
  function lastStarted(instantMs: number): number {
    findUntil(instantMs);
    return lowerBound(starts, instantMs + 1) - 1;
  }

  return {
    isOpenAt: (instantMs) => instantMs < (ends[lastStarted(instantMs)] ?? Number.NEGATIVE_INFINITY),
    nextStartAfter: (instantMs) => starts[lastStarted(instantMs) + 1],
    nextChangeAfter(instantMs) {
      const index = lastStarted(instantMs);
      const closesMs = ends[index] ?? Number.NEGATIVE_INFINITY;
      const nextMs = closesMs > instantMs ? closesMs : starts[index + 1];
      return nextMs !== undefined && nextMs < endMs ? nextMs : undefined;
    },
  };
}

/** The cost in steps of the next change of a window. */
const STEPS = { weekly: 1, interval: 0.1, always: 0.1, cron: 3 } as const;
const STEPS_OF_SWITCH = 5;
/** Where a start at the same time undoes each end, the search for the next change takes long. */
const STEPS_OF_TIED_SWITCH = 500;

function stepsOf(spec: TimeSpec, nowMs: number): number {
  if (spec.kind !== 'cron-switch') return STEPS[spec.kind];
  return isTied(spec, nowMs) ? STEPS_OF_TIED_SWITCH : STEPS_OF_SWITCH;
}

/** True if a start at the same time undoes the next end. */
function isTied(spec: CronSwitch, nowMs: number): boolean {
  const end = firingAfter({ cron: spec.endCron, zone: spec.zone }, nowMs);
  return end !== undefined && isOpenAt(spec, end.ms);
}

function isCalendar(value: unknown): value is Calendar {
  return typeof value === 'object' && value !== null && 'days' in value && 'name' in value;
}

function idOf(ids: Map<Calendar, string>, calendar: Calendar): string {
  return getOrAdd(ids, calendar, () => `calendar ${ids.size}`);
}

/** The openings of one or several windows within the horizon of lint. */
export interface Openings {
  isOpenAt(instantMs: number): boolean;
  /** The first start strictly after an instant; undefined if there is none. */
  nextStartAfter(instantMs: number): number | undefined;
  /** The first start or end strictly after an instant; undefined if there is none. */
  nextChangeAfter(instantMs: number): number | undefined;
}

const ALWAYS_OPEN: Openings = {
  isOpenAt: () => true,
  nextStartAfter: () => undefined,
  nextChangeAfter: () => undefined,
};

/** The number of windows whose next change costs one step together, if their openings are cached. */
const WINDOWS_PER_STEP = 100;

/** Open while any part is open. */
function unionOf(parts: readonly Openings[], { endMs }: Period, limit: StepLimit): Openings {
  const isOpenAt = (instantMs: number) => parts.some((part) => part.isOpenAt(instantMs));
  const firstStart = (instantMs: number) => earliest(parts, (part) => part.nextStartAfter(instantMs));

  /** The end of the opening at an instant, over adjoining parts; undefined if it is beyond the period. */
  function endOf(instantMs: number): number | undefined {
    let atMs = instantMs;
    while (limit.spend(parts.length / WINDOWS_PER_STEP)) {
      const ends = parts.filter((part) => part.isOpenAt(atMs)).map((part) => part.nextChangeAfter(atMs) ?? endMs);
      if (ends.length === 0) return atMs;
      atMs = Math.max(...ends);
      if (atMs >= endMs) return undefined;
    }
    return undefined;
  }

  return {
    isOpenAt,
    nextStartAfter(instantMs) {
      const closedMs = isOpenAt(instantMs) ? endOf(instantMs) : instantMs;
      return closedMs === undefined ? undefined : firstStart(closedMs);
    },
    nextChangeAfter: (instantMs) => (isOpenAt(instantMs) ? endOf(instantMs) : firstStart(instantMs)),
  };
}
