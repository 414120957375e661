import { settingsOf } from '../../domain/compute/compute.ts';
import { flipsOfAll } from '../../domain/decide/control-group.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { forecast } from '../../domain/forecast/forecast.ts';
import type { Segment } from '../../domain/forecast/walk.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { DAY_MS, WEEK_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';

/** A computed week is shown for this long. */
const FRESH_MS = 600_000;

/** One request works for at most so long, in real milliseconds; the next one goes on from there. */
const MOST_WORK_MS = 300;

/** A policy that changes more often in a day than this (each quarter of an hour) makes a week too long to walk through. */
const MOST_CHANGES_A_DAY = 96;

/** Weeks that are kept: of kinds of computes, of which a fleet has few. */
const MOST_KEPT = 2_000;

/** The next seven days of a compute, or why they are not known. */
export type Week = { state: 'known'; segments: readonly Segment[] } | { state: 'not_yet' | 'too_often' };

export interface WeekAhead {
  /** In the order of the subjects, one object for all that have the same; never blocks the event loop for long. */
  of(subjects: readonly ForecastSubject[], nowMs: number): Promise<Week[]>;
}

interface Kept {
  fromMs: number;
  segments: readonly Segment[];
}

interface WeekAheadOptions {
  policies(): CompiledPolicies;
  clock: Pick<Clock, 'monotonicMs' | 'nextTurn'>;
}

/** Works weeks out as they are asked for, and keeps them for ten minutes, or until policies, settings or holds change. */
export function createWeekAhead({ policies, clock }: WeekAheadOptions): WeekAhead {
  const kept = new Map<string, Kept>();
  let by: CompiledPolicies | undefined;
  /** By place, whether a policy changes too often; as far as that was asked. */
  const restless = new Map<number, boolean>();

  function begin(current: CompiledPolicies): void {
    if (current === by) return;
    by = current;
    kept.clear();
    restless.clear();
  }

  /** Works in small pieces, with a turn of the event loop after each: at least one, and then until there was enough. */
  async function work(current: CompiledPolicies, pieces: readonly (() => void)[], spentMs: number): Promise<number> {
    let workedMs = spentMs;
    for (const [index, piece] of pieces.entries()) {
      // Other policies may have become current while the event loop breathed.
      if ((index > 0 && workedMs >= MOST_WORK_MS) || current !== by) break;
      const startedMs = clock.monotonicMs();
      piece();
      workedMs += clock.monotonicMs() - startedMs;
      await clock.nextTurn();
    }
    return workedMs;
  }

  function workOut(current: CompiledPolicies, kind: string, subject: ForecastSubject, nowMs: number): void {
    const { segments } = forecast({ ...subject, policies: current, fromMs: nowMs, toMs: nowMs + WEEK_MS + FRESH_MS });
    keep(kept, kind, { fromMs: nowMs, segments });
  }

  return {
    async of(subjects, nowMs) {
      const current = policies();
      begin(current);
      const selecting = subjects.map(({ compute }) => current.selecting(compute));
      const unasked = [...new Set(selecting.flat())].filter((index) => !restless.has(index));
      const asking = unasked.map((index) => () => void restless.set(index, changesMoreThan(current, index, nowMs)));
      const spentMs = await work(current, asking, 0);
      const isCalm = (index: number) => restless.get(index) === false;
      const kinds = subjects.map((subject, at) => {
        const by = selecting[at] ?? [];
        return by.every(isCalm) ? kindOf(subject, { policies: current, selecting: by, nowMs }) : undefined;
      });
      const missing = new Map<string, ForecastSubject>();
      for (const [index, subject] of subjects.entries()) {
        const kind = kinds[index];
        if (kind !== undefined && !freshOf(kept, kind, nowMs)) missing.set(kind, subject);
      }
      const forecasting = [...missing].map(
        ([kind, subject]) =>
          () =>
            workOut(current, kind, subject, nowMs),
      );
      await work(current, forecasting, spentMs);
      const known = new Map<string, Week>();
      return kinds.map((kind, at) => {
        if (selecting[at]?.some((index) => restless.get(index))) return { state: 'too_often' };
        const fresh = kind === undefined ? undefined : freshOf(kept, kind, nowMs);
        if (kind === undefined || fresh === undefined) return { state: 'not_yet' };
        const week = known.get(kind) ?? { state: 'known', segments: cut(fresh.segments, nowMs) };
        known.set(kind, week);
        return week;
      });
    },
  };
}

function freshOf(kept: ReadonlyMap<string, Kept>, kind: string, nowMs: number): Kept | undefined {
  const found = kept.get(kind);
  return found && nowMs >= found.fromMs && nowMs < found.fromMs + FRESH_MS ? found : undefined;
}

/** Computes of the same kind have the same week: the same policies select them, they have the same, and nobody holds them. */
function kindOf(
  { compute, baseline, trials, floors, holds = [] }: ForecastSubject,
  { policies, selecting, nowMs }: { policies: CompiledPolicies; selecting: readonly number[]; nowMs: number },
): string {
  const isYoung = selecting.some((index) => !policies.selects(index, compute, nowMs));
  const settings = [compute, baseline ?? compute].map((one) => Object.values(settingsOf(one)));
  const flips = flipsOfAll(policies, { compute, trials });
  const own =
    isYoung || holds.length > 0 || flips.length > 0 || floors !== undefined
      ? [compute.computeId, holds.map(({ id, expiresAtMs }) => [id, expiresAtMs])]
      : [];
  return JSON.stringify([selecting, settings, own]);
}

function keep(kept: Map<string, Kept>, kind: string, week: Kept): void {
  kept.delete(kind);
  kept.set(kind, week);
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
}

function cut(segments: readonly Segment[], nowMs: number): Segment[] {
  const endMs = nowMs + WEEK_MS;
  return segments
    .filter(({ fromMs, toMs }) => toMs > nowMs && fromMs < endMs)
    .map((segment) => ({
      ...segment,
      fromMs: Math.max(segment.fromMs, nowMs),
      toMs: Math.min(segment.toMs, endMs),
    }));
}

function changesMoreThan(policies: CompiledPolicies, index: number, nowMs: number): boolean {
  let instantMs: number | undefined = nowMs;
  for (let count = 0; count <= MOST_CHANGES_A_DAY; count += 1) {
    instantMs = policies.nextChangeAfter(index, instantMs);
    if (instantMs === undefined || instantMs > nowMs + DAY_MS) return false;
  }
  return true;
}
