import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { PastLowerings } from '../../domain/records/past-lowerings.ts';
import { lowerBound } from '../../domain/sorted.ts';

export interface ReplayedCompute {
  compute: Compute;
  history: AwakeHistory;
  lowerings: PastLowerings;
}

/** A compute over time. Instants are milliseconds since the epoch. */
export interface ComputeInTime extends Pick<ReplayedCompute, 'compute' | 'lowerings'> {
  computeId: string;
  /** The compute as it was: active where its state is not known. */
  at(atMs: number): Compute;
  /** False where it is not known whether the compute was awake. */
  isKnown(atMs: number): boolean;
  /** The first instant from `atMs` on at which the compute was or may have been awake; infinite if there is none. */
  awakeFromMs(atMs: number): number;
  /** The first entry of audit or history after an instant; infinite if there is none. */
  nextEntryMs(afterMs: number): number;
}

interface Span {
  startMs: number;
  endMs: number;
  /** Absent where it is not known when the compute was started. */
  startedAtMs?: number;
  isKnown: boolean;
}

export function computeInTime({ compute, history, lowerings }: ReplayedCompute): ComputeInTime {
  const spans = spansOf(history);
  const starts = spans.map(({ startMs }) => startMs);
  const { startedAtMs: _now, pendingState: _pending, ...lasting } = compute;
  const spanAt = (atMs: number) => {
    const span = spans[lowerBound(starts, atMs + 1) - 1];
    return span && atMs < span.endMs ? span : undefined;
  };
  return {
    compute,
    computeId: compute.computeId,
    lowerings,
    at(atMs) {
      const span = spanAt(atMs);
      if (!span) return { ...lasting, state: 'idle' };
      const { startedAtMs } = span;
      return { ...lasting, state: 'active', ...(startedAtMs !== undefined && { startedAtMs }) };
    },
    isKnown: (atMs) => spanAt(atMs)?.isKnown ?? true,
    awakeFromMs: (atMs) => (spanAt(atMs) ? atMs : firstAfter(starts, atMs)),
    nextEntryMs: (afterMs) => firstAfter(lowerings.instants, afterMs),
  };
}

function firstAfter(ascending: readonly number[], ms: number): number {
  return ascending[lowerBound(ascending, ms + 1)] ?? Number.POSITIVE_INFINITY;
}

/** The spans in which the compute was awake or its state is unknown, in order and without overlaps. */
function spansOf({ intervals, unknown, fromMs, toMs }: AwakeHistory): Span[] {
  const awake = intervals.map(
    ({ startMs, endMs, start }): Span => ({
      startMs,
      endMs,
      isKnown: true,
      ...(start !== 'unknown' && { startedAtMs: startMs }),
    }),
  );
  const gaps = [
    { fromMs: Number.NEGATIVE_INFINITY, toMs: fromMs },
    ...unknown,
    { fromMs: toMs, toMs: Number.POSITIVE_INFINITY },
  ].map((gap): Span => ({ startMs: gap.fromMs, endMs: gap.toMs, isKnown: false }));
  return [...awake, ...gaps].filter(({ startMs, endMs }) => endMs > startMs).toSorted((a, b) => a.startMs - b.startMs);
}
