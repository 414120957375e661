import { settingsOf } from '../../domain/compute/compute.ts';
import { flipsOfAll } from '../../domain/decide/control-group.ts';
import { type ForecastSubject, freezesOf } from '../../domain/forecast/compute-groups.ts';
import { forecast, type Segment } from '../../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { overlaps } from '../../domain/time/span.ts';
import { DAY_MS, WEEK_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';

/** A computed week is shown for this long, in milliseconds. */
const FRESH_MS = 600_000;

/** One request computes for at most about this long, in real milliseconds. The next request continues. */
const MAX_WORK_MS = 300;

/** The week of a compute is not computed if one of its policies changes more often than this in a day: every quarter of an hour. */
const MAX_CHANGES_PER_DAY = 96;

/** The most weeks that are kept. Computes of the same kind share a week, and a fleet has few kinds. */
const MAX_KEPT = 2_000;

/** The next seven days of a compute, or why they are unknown. */
export type Week = { state: 'known'; segments: readonly Segment[] } | { state: 'not_yet' | 'too_often' };

export interface WeekAhead {
  /** Returns weeks in the order of the subjects. Subjects of the same kind get the same object. Never blocks the event loop for long. */
  of(subjects: readonly ForecastSubject[], nowMs: number): Promise<Week[]>;
}

interface Kept {
  fromMs: number;
  segments: readonly Segment[];
}

/** Creates a cache of weeks. A week is computed when first asked for, and kept for ten minutes, or until policies, settings or overrides change. */
export function createWeekAhead({
  policies,
  clock,
}: {
  policies(): CompiledPolicies;
  clock: Pick<Clock, 'monotonicMs' | 'nextTurn'>;
}): WeekAhead {
  const kept = new Map<string, Kept>();
  /** The policies that `kept` and `changesTooOften` are about. */
  let current: CompiledPolicies | undefined;
  /** True if a policy changes too often to compute weeks, by the index of the policy. */
  const changesTooOften = new Map<number, boolean>();

  /** Runs at least one task, and more until the time is spent, with a turn of the event loop after each. Returns the time spent. */
  async function work(asked: CompiledPolicies, tasks: readonly (() => void)[], spentMs: number): Promise<number> {
    let workedMs = spentMs;
    for (const [index, task] of tasks.entries()) {
      // The policies may have changed during the last turn.
      if ((index > 0 && workedMs >= MAX_WORK_MS) || asked !== current) break;
      const startedMs = clock.monotonicMs();
      task();
      workedMs += clock.monotonicMs() - startedMs;
      await clock.nextTurn();
    }
    return workedMs;
  }

  return {
    async of(subjects, nowMs) {
      const latest = policies();
      if (latest !== current) {
        current = latest;
        kept.clear();
        changesTooOften.clear();
      }
      const selecting = subjects.map(({ compute }) => latest.selecting(compute));
      const unasked = [...new Set(selecting.flat())].filter((index) => !changesTooOften.has(index));
      const counting = unasked.map((index) => () => {
        changesTooOften.set(index, isChangedTooOften(latest, index, nowMs));
      });
      const spentMs = await work(latest, counting, 0);
      const kinds = subjects.map((subject, position) => {
        const indexes = selecting[position] ?? [];
        const isComputable = indexes.every((index) => changesTooOften.get(index) === false);
        return isComputable ? kindOf(subject, { policies: latest, selecting: indexes, nowMs }) : undefined;
      });
      const missing = new Map<string, ForecastSubject>();
      for (const [index, subject] of subjects.entries()) {
        const kind = kinds[index];
        if (kind !== undefined && !freshOf(kept, kind, nowMs)) missing.set(kind, subject);
      }
      const forecasting = [...missing].map(([kind, subject]) => () => {
        const toMs = nowMs + WEEK_MS + FRESH_MS;
        const { segments } = forecast({ ...subject, policies: latest, fromMs: nowMs, toMs });
        keep(kept, kind, { fromMs: nowMs, segments });
      });
      await work(latest, forecasting, spentMs);
      const weeks = new Map<string, Week>();
      return kinds.map((kind, position) => {
        if (selecting[position]?.some((index) => changesTooOften.get(index))) return { state: 'too_often' };
        const fresh = kind === undefined ? undefined : freshOf(kept, kind, nowMs);
        if (kind === undefined || fresh === undefined) return { state: 'not_yet' };
        const week = weeks.get(kind) ?? { state: 'known', segments: cut(fresh.segments, nowMs) };
        weeks.set(kind, week);
        return week;
      });
    },
  };
}

function freshOf(kept: ReadonlyMap<string, Kept>, kind: string, nowMs: number): Kept | undefined {
  const found = kept.get(kind);
  return found && nowMs >= found.fromMs && nowMs < found.fromMs + FRESH_MS ? found : undefined;
}

/**
 * Returns the kind of a compute. Computes of one kind have the same week: the same policies and freezes select them, and their settings and
 * baselines are equal. A compute that is held, in a trial, kept above a floor or changed by hand, or that a policy selects only later, is a kind
 * of its own.
 */
function kindOf(
  { holds = [], respected, ...subject }: ForecastSubject,
  { policies, selecting, nowMs }: { policies: CompiledPolicies; selecting: readonly number[]; nowMs: number },
): string {
  const { compute, baseline, trials, floors } = subject;
  const isYoung = selecting.some((index) => !policies.selects(index, compute, nowMs));
  const settings = [compute, baseline ?? compute].map((one) => Object.values(settingsOf(one)));
  const flips = flipsOfAll(policies, { compute, trials });
  const ownState =
    isYoung || holds.length > 0 || flips.length > 0 || floors !== undefined || respected !== undefined
      ? [compute.computeId, holds.map(({ id, expiresAtMs }) => [id, expiresAtMs]), respected]
      : [];
  return JSON.stringify([selecting, settings, freezesOf(subject).map(({ id }) => id), ownState]);
}

function keep(kept: Map<string, Kept>, kind: string, week: Kept): void {
  kept.delete(kind);
  kept.set(kind, week);
  const [oldest] = kept.keys();
  if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
}

function cut(segments: readonly Segment[], nowMs: number): Segment[] {
  const endMs = nowMs + WEEK_MS;
  return segments
    .filter((segment) => overlaps(segment, { fromMs: nowMs, toMs: endMs }))
    .map((segment) => ({ ...segment, fromMs: Math.max(segment.fromMs, nowMs), toMs: Math.min(segment.toMs, endMs) }));
}

function isChangedTooOften(policies: CompiledPolicies, index: number, nowMs: number): boolean {
  let instantMs: number | undefined = nowMs;
  for (let count = 0; count <= MAX_CHANGES_PER_DAY; count += 1) {
    instantMs = policies.nextChangeAfter(index, instantMs);
    if (instantMs === undefined || instantMs > nowMs + DAY_MS) return false;
  }
  return true;
}
