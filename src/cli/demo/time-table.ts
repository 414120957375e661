/** A pair of instants that are the same moment: `realMs` after the start, `simulatedMs` since the epoch. */
export interface TimePoint {
  realMs: number;
  simulatedMs: number;
}

const SLOW_FACTOR = 10;
const SLOW_BEFORE_MS = 6_000;
const SLOW_AFTER_MS = 24_000;
const SLOW_AFTER_DEADLINE_MS = 10_000;

/**
 * The day's time: slow around each boundary and deadline, where something happens, and fast in between, so that the whole
 * takes about `realMs`. Real time goes on after the end. All milliseconds.
 */
export function dayTimeTable(day: {
  startMs: number;
  endMs: number;
  boundariesMs: readonly number[];
  /** Where what has waited is done; by then it is few computes. */
  deadlinesMs: readonly number[];
  realMs: number;
}): TimePoint[] {
  const around = (instants: readonly number[], afterMs: number) =>
    instants.map((ms) => ({ from: ms - SLOW_BEFORE_MS, to: ms + afterMs }));
  const slow = mergeSpans(
    [...around(day.boundariesMs, SLOW_AFTER_MS), ...around(day.deadlinesMs, SLOW_AFTER_DEADLINE_MS)],
    day,
  );
  const slowMs = slow.reduce((sum, { from, to }) => sum + (to - from), 0);
  const fastRealMs = Math.max(day.realMs - slowMs / SLOW_FACTOR, 5_000);
  const fastFactor = (day.endMs - day.startMs - slowMs) / fastRealMs;
  const table: TimePoint[] = [{ realMs: 0, simulatedMs: day.startMs }];
  const goTo = (simulatedMs: number, factor: number) => {
    const last = table.at(-1);
    if (last && simulatedMs > last.simulatedMs) {
      table.push({ realMs: last.realMs + (simulatedMs - last.simulatedMs) / factor, simulatedMs });
    }
  };
  for (const { from, to } of slow) {
    goTo(from, fastFactor);
    goTo(to, SLOW_FACTOR);
  }
  goTo(day.endMs, fastFactor);
  return table;
}

interface Span {
  from: number;
  to: number;
}

function mergeSpans(spans: readonly Span[], { startMs, endMs }: { startMs: number; endMs: number }): Span[] {
  const merged: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const clipped = { from: Math.max(span.from, startMs), to: Math.min(span.to, endMs) };
    const last = merged.at(-1);
    if (last && clipped.from <= last.to) last.to = Math.max(last.to, clipped.to);
    else if (clipped.to > clipped.from) merged.push(clipped);
  }
  return merged;
}
