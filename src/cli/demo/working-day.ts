import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { resolveDisruption } from '../../domain/policy/disruption.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS } from '../../domain/time/units.ts';

/** The day that the demo lives through: a Monday in Berlin, from five to five. */
export const DAY_STARTS_MS = Date.parse('2026-03-02T05:00:00+01:00');
export const DAY_ENDS_MS = Date.parse('2026-03-03T05:00:00+01:00');
export const DAY_ZONE = 'Europe/Berlin';

/** Clients that wake a compute and keep it awake. Times of day in Berlin. */
export interface Visit {
  project: string;
  from: string;
  forMinutes: number;
  connections: number;
  /** The size that they need. */
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
  return sameDay >= DAY_STARTS_MS ? sameDay : sameDay + DAY_MS;
}

/** The real duration of the day in milliseconds. A day with very many changes takes longer, since even its fast part has a least duration. */
const DAY_REAL_MS = 44_000;
const MIN_FAST_REAL_MS = 5_000;

/** Slow time runs this much faster than real time. */
const SLOW_FACTOR = 10;
/** Time is slow around a change, from this long before to this long after it, in simulated milliseconds. */
const SLOW_BEFORE_MS = 6_000;
const SLOW_AFTER_MS = 24_000;
/** Time is slow for a shorter time after a deadline, since only the waiting changes of a few computes are made then. */
const SLOW_AFTER_DEADLINE_MS = 10_000;

/**
 * The time of the day as points: `realMs` after the start is `simulatedMs` since the epoch. Time is slow around each instant at which a policy
 * changes, or at which a change that waits for sleep reaches its deadline. Between them it is as fast as the whole needs to take
 * {@link DAY_REAL_MS}. After the end it runs as fast as real time.
 */
export function dayTimeTable(policies: CompiledPolicies): { realMs: number; simulatedMs: number }[] {
  const slow = slowSpans(policies);
  const edges = [DAY_STARTS_MS, ...slow.flatMap(({ fromMs, toMs }) => [fromMs, toMs]), DAY_ENDS_MS].sort(
    (a, b) => a - b,
  );
  const pieces = edges.slice(1).map((toMs, index) => {
    const fromMs = edges[index] ?? DAY_STARTS_MS;
    const isSlow = slow.some((span) => span.fromMs <= fromMs && toMs <= span.toMs);
    return { toMs, lengthMs: toMs - fromMs, isSlow };
  });
  const slowMs = pieces.reduce((sum, { lengthMs, isSlow }) => sum + (isSlow ? lengthMs : 0), 0);
  const fastRealMs = Math.max(DAY_REAL_MS - slowMs / SLOW_FACTOR, MIN_FAST_REAL_MS);
  const fastFactor = (DAY_ENDS_MS - DAY_STARTS_MS - slowMs) / fastRealMs;
  let realMs = 0;
  const table = [{ realMs, simulatedMs: DAY_STARTS_MS }];
  for (const { toMs, lengthMs, isSlow } of pieces.filter((piece) => piece.lengthMs > 0)) {
    realMs += lengthMs / (isSlow ? SLOW_FACTOR : fastFactor);
    table.push({ realMs, simulatedMs: toMs });
  }
  return table;
}

/** The slow parts of the day; they may overlap. */
function slowSpans(policies: CompiledPolicies): Span[] {
  const within = (ms: number) => Math.min(Math.max(ms, DAY_STARTS_MS), DAY_ENDS_MS);
  const around = (ms: number, afterMs: number) => ({ fromMs: within(ms - SLOW_BEFORE_MS), toMs: within(ms + afterMs) });
  const spans = [around(DAY_STARTS_MS, SLOW_AFTER_MS)];
  for (const [index, policy] of policies.set.policies.entries()) {
    const setsSizes = ruleOf(policy)
      .windows(policy)
      .some(({ size }) => size !== undefined);
    const { deadlineMs = 0 } = setsSizes ? resolveDisruption(policy.disruption).lower : {};
    let next = policies.nextChangeAfter(index, DAY_STARTS_MS);
    for (; next !== undefined && next < DAY_ENDS_MS; next = policies.nextChangeAfter(index, next)) {
      spans.push(around(next, SLOW_AFTER_MS), around(next + deadlineMs, SLOW_AFTER_DEADLINE_MS));
    }
  }
  return spans;
}
