/** The day that the demo lives through: a Monday in Berlin, from five to five. */
export const DAY_STARTS_MS = Date.parse('2026-03-02T05:00:00+01:00');
export const DAY_ENDS_MS = Date.parse('2026-03-03T05:00:00+01:00');
export const DAY_ZONE = 'Europe/Berlin';

/** Clients that come and go, so that something wakes computes and keeps them awake. Times of day in Berlin. */
export interface Visit {
  project: string;
  from: string;
  forMinutes: number;
  connections: number;
  /** The size that would serve them best. */
  cu: number;
}

export const VISITS: readonly Visit[] = [
  { project: 'demo-web-shop', from: '05:10', forMinutes: 170, connections: 6, cu: 0.8 },
  { project: 'demo-web-shop', from: '08:05', forMinutes: 820, connections: 40, cu: 2.2 },
  { project: 'demo-web-blog', from: '08:20', forMinutes: 480, connections: 12, cu: 0.9 },
  { project: 'demo-web-blog', from: '19:10', forMinutes: 25, connections: 3, cu: 0.4 },
  { project: 'demo-web-checkout', from: '08:10', forMinutes: 560, connections: 25, cu: 2.6 },
  { project: 'demo-web-checkout', from: '18:05', forMinutes: 100, connections: 1000, cu: 3.2 },
  { project: 'demo-dev-alice', from: '09:05', forMinutes: 150, connections: 4, cu: 0.6 },
  { project: 'demo-dev-alice', from: '13:20', forMinutes: 200, connections: 4, cu: 0.7 },
  { project: 'demo-dev-bob', from: '09:40', forMinutes: 310, connections: 3, cu: 0.4 },
  { project: 'demo-dev-ci', from: '09:15', forMinutes: 20, connections: 8, cu: 1.5 },
  { project: 'demo-dev-ci', from: '11:45', forMinutes: 20, connections: 8, cu: 1.5 },
  { project: 'demo-dev-ci', from: '16:30', forMinutes: 25, connections: 8, cu: 1.8 },
  { project: 'demo-data-etl', from: '02:00', forMinutes: 75, connections: 10, cu: 4.5 },
  { project: 'demo-data-reports', from: '07:30', forMinutes: 120, connections: 5, cu: 1.6 },
];

/** The first instant of the day with the visit's time, milliseconds since the epoch. */
export function visitStartsMs({ from }: Visit): number {
  const sameDay = Date.parse(`2026-03-02T${from}:00+01:00`);
  return sameDay >= DAY_STARTS_MS ? sameDay : sameDay + 24 * 3600 * 1000;
}

/** A pair of instants that are the same moment: `realMs` after the start, `simulatedMs` since the epoch. */
interface TimePoint {
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
  /** Instants at which waiting changes are made; these are few computes. */
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
