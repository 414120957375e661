/**
 * Replays a guard over the past: the rounds of a daemon, with past samples instead of present ones. Rounds in which nothing is watched are
 * left out. Instants are milliseconds since the epoch.
 */

import type { Compute } from '../../domain/compute/compute.ts';
import type { Verdict } from '../../domain/guards/verdict.ts';
import {
  type JudgedCompute,
  NOTHING_WATCHED,
  type WatchEvent,
  type WatchMemory,
  watchRound,
} from '../../domain/guards/watch.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import type { Lowering } from '../../domain/records/lowerings.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CountError } from '../../ports/connections.ts';
import { createGuardAsker, type GuardAnswer } from './ask.ts';
import { askedOf, observed, ROUND_MS } from './observed.ts';
import type { RecordedSeries } from './recorded-series.ts';
import { type ComputeInTime, computeInTime, type ReplayedCompute } from './replayed-compute.ts';

/** Rounds before an entry of the audit or a start, besides `for` and `settle`, so that each bad stretch that counts is seen from its beginning. */
const EARLIER_MS = 5 * ROUND_MS;

export interface ReplayedEvent extends WatchEvent {
  atMs: number;
}

export interface ReplayedLowering {
  compute: Compute;
  lowering: Lowering;
  /** What the guard said before it. It is not asked before another timeout, nor about a sleeping compute. */
  before: Verdict | 'asleep' | 'not_asked';
  /** Oldest first. */
  events: ReplayedEvent[];
  /** The time awake that was watched, with samples and without, in milliseconds. */
  sampledMs: number;
  blindMs: number;
}

export interface ReplayOptions {
  guard: GuardPolicy;
  source: ConnectionSource;
  series: RecordedSeries;
  computes: readonly ReplayedCompute[];
  /** True if the guard selects the compute at this instant. */
  selects(compute: Compute, atMs: number): boolean;
  fromMs: number;
  toMs: number;
  signal: AbortSignal;
  clock: Pick<Clock, 'nextTurn'>;
  onProgress?(progress: { doneMs: number; allMs: number }): void;
}

export type Replayed = { ok: true; lowerings: ReplayedLowering[] } | { ok: false; error: CountError };

/** Returns the lowerings between two instants, oldest first. Those of a day before are watched, too, since their harms count. */
export async function replayGuard(options: ReplayOptions): Promise<Replayed> {
  const { guard, source, series, toMs, signal, clock } = options;
  const fromMs = options.fromMs - DAY_MS;
  const computes = options.computes.map(computeInTime);
  const rows = rowsOf(computes, fromMs, toMs);
  const asker = createGuardAsker(series);
  const leadMs = guard.forMs + guard.settleMs + EARLIER_MS;
  let memory = NOTHING_WATCHED;
  let concluded: ReadonlyMap<string, number> = new Map();
  for (let atMs = fromMs; ; atMs += ROUND_MS) {
    atMs = nextRound(computes, { atMs, leadMs, concluded, memory });
    if (atMs > toMs || signal.aborted) break;
    const selected = computes.filter(({ compute }) => options.selects(compute, atMs));
    const now = selected.map((one) => one.at(atMs));
    const loweredAtMs = loweredBy(selected, atMs, concluded);
    series.seek(atMs);
    const answer = await asker.ask({ guard, source, computes: askedOf(now), loweredAtMs, nowMs: atMs, signal });
    if (answer.error) return { ok: false, error: answer.error };
    const judged = observed(now, answer, { loweredAtMs, recordOf: () => undefined });
    const isKnown = new Set(selected.filter((one) => one.isKnown(atMs)).map(({ computeId }) => computeId));
    const step = watchRound(guard, memory, { atMs, computes: judged.map((one) => assumed(one, isKnown, answer)) });
    ({ memory } = step);
    concluded = new Map([...concluded, ...memory.harms.map((one) => [one.computeId, one.loweredAtMs] as const)]);
    noteVerdicts(rows, answer, atMs);
    for (const event of step.events) rows.get(keyOf(event))?.events.push({ ...event, atMs });
    for (const [computeId, { watch }] of Object.entries(memory.computes)) {
      const row = watch && rows.get(keyOf({ computeId, loweredAtMs: watch.loweredAtMs }));
      if (row) Object.assign(row, { sampledMs: watch.sampledMs, blindMs: watch.blindMs });
    }
    options.onProgress?.({ doneMs: atMs - fromMs, allMs: toMs - fromMs });
    await clock.nextTurn();
  }
  const lowerings = [...rows.values()].filter(({ lowering }) => lowering.atMs >= options.fromMs);
  return { ok: true, lowerings: lowerings.toSorted((a, b) => a.lowering.atMs - b.lowering.atMs) };
}

function keyOf({ computeId, loweredAtMs }: { computeId: string; loweredAtMs: number }): string {
  return `${computeId} ${loweredAtMs}`;
}

function rowsOf(computes: readonly ComputeInTime[], fromMs: number, toMs: number): Map<string, ReplayedLowering> {
  const rows = new Map<string, ReplayedLowering>();
  for (const { compute, lowerings } of computes) {
    for (const lowering of lowerings.all) {
      const { atMs: loweredAtMs, changes } = lowering;
      if (loweredAtMs < fromMs || loweredAtMs > toMs) continue;
      const before = changes.some(({ group }) => group === 'size') ? 'asleep' : 'not_asked';
      const row: ReplayedLowering = { compute, lowering, before, events: [], sampledMs: 0, blindMs: 0 };
      rows.set(keyOf({ computeId: compute.computeId, loweredAtMs }), row);
    }
  }
  return rows;
}

interface Watching {
  atMs: number;
  leadMs: number;
  concluded: ReadonlyMap<string, number>;
  memory: WatchMemory;
}

/** The next round at or after an instant in which a compute is watched, or soon will be; infinite if there is none. */
function nextRound(computes: readonly ComputeInTime[], watching: Watching): number {
  const { atMs } = watching;
  const nextMs = Math.min(...computes.map((one) => nextOf(one, watching)));
  return Math.max(Math.ceil(atMs / ROUND_MS), Math.floor(nextMs / ROUND_MS)) * ROUND_MS;
}

function nextOf(one: ComputeInTime, { atMs, leadMs, concluded, memory }: Watching): number {
  const { computeId, lowerings } = one;
  const { watch, bad } = memory.computes[computeId] ?? {};
  const lowering = lowerings.at(atMs, concluded.get(computeId));
  // Each entry may begin a watch, or end one in the round after it.
  const nextMs = one.nextEntryMs(atMs - ROUND_MS) - leadMs;
  if (!lowering || (watch?.isOver && watch.loweredAtMs === lowering.atMs)) return nextMs;
  // A bad stretch delays the end of a watch until it is forgotten, also while the compute sleeps.
  return bad ? atMs : Math.min(nextMs, one.awakeFromMs(atMs) - leadMs);
}

function loweredBy(
  computes: readonly ComputeInTime[],
  atMs: number,
  concluded: ReadonlyMap<string, number>,
): Map<string, number> {
  const lowered = computes.flatMap(({ computeId, lowerings }) => {
    const lowering = lowerings.at(atMs, concluded.get(computeId));
    return lowering ? [[computeId, lowering.atMs] as const] : [];
  });
  return new Map(lowered);
}

/** Where it is not known whether a compute was awake, it counts as awake while the guard has values of it. */
function assumed(judged: JudgedCompute, isKnown: ReadonlySet<string>, { verdicts }: GuardAnswer): JudgedCompute {
  const hasValue = verdicts.get(judged.computeId)?.value !== undefined;
  return hasValue || isKnown.has(judged.computeId) ? judged : { ...judged, state: undefined };
}

/** Keeps what the guard said in the last round before each lowering. */
function noteVerdicts(rows: ReadonlyMap<string, ReplayedLowering>, { verdicts }: GuardAnswer, atMs: number): void {
  for (const row of rows.values()) {
    const verdict = verdicts.get(row.compute.computeId);
    const isNext = row.lowering.atMs >= atMs && row.lowering.atMs < atMs + ROUND_MS;
    if (verdict && isNext && row.before !== 'not_asked') row.before = verdict;
  }
}
