import { lowerBound } from '../../domain/sorted.ts';
import type { Calendar, CronSwitch, TimeSpec } from '../../domain/time/time-spec.ts';
import { coverWholeWeek } from '../../domain/time/windows/coverage.ts';
import { firingAfter } from '../../domain/time/windows/cron-firings.ts';
import { isOpenAt, nextChangeAfter } from '../../domain/time/windows.ts';
import type { Budget } from './budget.ts';

/** The time that lint looks at: [nowMs, endMs). */
export interface Period {
  nowMs: number;
  endMs: number;
}

export interface OpeningsCache {
  /** When any of some windows is open. */
  of(specs: readonly TimeSpec[]): Openings;
}

/** Equal windows, of any policy, are evaluated once. */
export function createOpeningsCache(period: Period, budget: Budget): OpeningsCache {
  const known = new Map<string, Openings>();
  const calendarIds = new Map<Calendar, string>();
  const keyOf = (_name: string, value: unknown) => (isCalendar(value) ? idOf(calendarIds, value) : value);
  const ofSpec = new WeakMap<TimeSpec, Openings>();
  const ofOne = (spec: TimeSpec): Openings => {
    const seen = ofSpec.get(spec);
    if (seen) return seen;
    const key = JSON.stringify(spec, keyOf);
    const openings = known.get(key) ?? createOpenings(spec, period, budget);
    known.set(key, openings);
    ofSpec.set(spec, openings);
    return openings;
  };
  return {
    of(specs) {
      if (coverWholeWeek(specs)) return ALWAYS_OPEN;
      const [only, ...rest] = specs.map(ofOne);
      return only && rest.length === 0 ? only : unionOf(only ? [only, ...rest] : [], period, budget);
    },
  };
}

/** Openings of one window, found one after the other on demand. */
function createOpenings(spec: TimeSpec, { nowMs, endMs }: Period, budget: Budget): Openings {
  const starts: number[] = [];
  const ends: number[] = [];
  const steps = stepsOf(spec, nowMs);
  const change = (atMs: number) => (budget.spend(steps) ? nextChangeAfter(spec, atMs) : undefined);
  let nextStartMs: number | undefined;
  let hasBegun = false;

  /** Finds openings until one starts after an instant, or no more start before the end of the period. */
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

  /** Place of the last opening that starts at or before an instant; −1 if there is none. */
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
/** A switch of which every end is undone by a start at the same time is looked through for long. */
const STEPS_OF_TIED_SWITCH = 500;

function stepsOf(spec: TimeSpec, nowMs: number): number {
  if (spec.kind !== 'cron-switch') return STEPS[spec.kind];
  return isTied(spec, nowMs) ? STEPS_OF_TIED_SWITCH : STEPS_OF_SWITCH;
}

function isTied(spec: CronSwitch, nowMs: number): boolean {
  const end = firingAfter({ cron: spec.endCron, zone: spec.zone }, nowMs);
  return end !== undefined && isOpenAt(spec, end.ms);
}

function isCalendar(value: unknown): value is Calendar {
  return typeof value === 'object' && value !== null && 'days' in value && 'name' in value;
}

function idOf(ids: Map<Calendar, string>, calendar: Calendar): string {
  const id = ids.get(calendar) ?? `calendar ${ids.size}`;
  ids.set(calendar, id);
  return id;
}

/** When windows are open, within the horizon of lint. */
export interface Openings {
  isOpenAt(instantMs: number): boolean;
  /** The first start strictly after an instant; undefined if there is none in that time. */
  nextStartAfter(instantMs: number): number | undefined;
  /** The first start or end strictly after an instant; undefined if there is none in that time. */
  nextChangeAfter(instantMs: number): number | undefined;
}

const ALWAYS_OPEN: Openings = {
  isOpenAt: () => true,
  nextStartAfter: () => undefined,
  nextChangeAfter: () => undefined,
};

/** Windows with known openings that count as one step. */
const WINDOWS_PER_STEP = 100;

/** Open while any of the parts is. Where one ends and another begins nothing changes. */
function unionOf(parts: readonly Openings[], { endMs }: { endMs: number }, budget: Budget): Openings {
  const isOpenAt = (instantMs: number) => parts.some((part) => part.isOpenAt(instantMs));
  const firstStart = (instantMs: number) => earliest(parts.map((part) => part.nextStartAfter(instantMs)));

  /** The end of the opening at an instant, part by part; undefined if it is beyond the period. */
  function endOf(instantMs: number): number | undefined {
    let atMs = instantMs;
    while (budget.spend(parts.length / WINDOWS_PER_STEP)) {
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

/** The earliest of some instants, of which any may be unknown. */
export function earliest(instants: readonly (number | undefined)[]): number | undefined {
  let first: number | undefined;
  for (const ms of instants) if (ms !== undefined && (first === undefined || ms < first)) first = ms;
  return first;
}
