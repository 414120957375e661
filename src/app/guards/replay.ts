/**
 * Replays a guard over the past: the rounds of a daemon, with past samples instead of present ones. Rounds in which nothing is watched are
 * left out. Instants are milliseconds since the epoch.
 */

import type { Compute, FieldGroup } from '../../domain/compute/compute.ts';
import { isWithinRetry } from '../../domain/decide/stages/floors.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { Verdict } from '../../domain/guards/verdict.ts';
import {
  NOTHING_WATCHED,
  type WatchEvent,
  type WatchMemory,
  type WatchStep,
  watchRound,
} from '../../domain/guards/watch.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import { isLower, type Lowering } from '../../domain/records/lowerings.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CountError } from '../../ports/connections.ts';
import { createGuardAsker, type GuardAnswer } from './ask.ts';
import { askedOf, observed, ROUND_MS } from './observed.ts';
import type { RecordedSeries } from './recorded-series.ts';
import { type ComputeInTime, computeInTime, type ReplayedCompute } from './replayed-compute.ts';

/**
 * Rounds are replayed from the sum of `for`, `settle` and this time before an entry of the history or the start of a compute, so that the begin
 * of a bad stretch is seen.
 */
const EARLIER_MS = 5 * ROUND_MS;

type Change = Lowering['changes'][number];

export interface ReplayedEvent extends WatchEvent {
  atMs: number;
}

export interface ReplayedLowering {
  compute: Compute;
  lowering: Lowering;
  /** The guard's last verdict before the lowering: `asleep` for a sleeping compute, `not_asked` for a change of the timeout alone. */
  before: Verdict | 'asleep' | 'not_asked';
  /** Oldest first. */
  events: ReplayedEvent[];
  /** How long the compute was awake while it was watched: with samples (`sampledMs`), and without samples (`blindMs`). */
  sampledMs: number;
  blindMs: number;
  /** The groups of fields that the guard would have set back because of the harm; absent without a harm. */
  takenBack?: FieldGroup[];
  /** When an earlier harm was found, after which this lowering would not have been made. Such a lowering is not watched. */
  notTriedSinceMs?: number;
  /** The groups of fields whose lowering the floor of an earlier harm would have prevented. */
  keptBack?: FieldGroup[];
}

export interface ReplayOptions {
  guard: GuardPolicy;
  source: ConnectionSource;
  series: RecordedSeries;
  computes: readonly ReplayedCompute[];
  /** The names of the policies of the set. A lowering that no policy made is not undone. */
  policies: ReadonlySet<string>;
  /** True if the guard selects the compute at this instant. */
  selects(compute: Compute, atMs: number): boolean;
  fromMs: number;
  toMs: number;
  signal: AbortSignal;
  clock: Pick<Clock, 'nextTurn'>;
  onProgress?(progress: { doneMs: number; allMs: number }): void;
}

export type Replayed = { ok: true; lowerings: ReplayedLowering[] } | { ok: false; error: CountError };

/** Returns the lowerings between two instants, oldest first. The day before is replayed, too, since floors of its harms may still hold. */
export async function replayGuard(options: ReplayOptions): Promise<Replayed> {
  const { guard, source, series, toMs, signal, clock } = options;
  const fromMs = options.fromMs - DAY_MS;
  const computes = options.computes.map(computeInTime);
  const rows = rowsOf(computes, fromMs, toMs);
  const rowsOfRound = groupBy(rows.values(), ({ lowering }) => Math.floor(lowering.atMs / ROUND_MS) * ROUND_MS);
  const floors = replayedFloors(options, rows);
  const asker = createGuardAsker(series);
  const leadMs = guard.forMs + guard.settleMs + EARLIER_MS;
  let memory = NOTHING_WATCHED;
  // The instant of the last lowering that is not watched any more, by compute id.
  const concluded = new Map<string, number>();
  const nextFrom = (atMs: number) => nextRound(computes, { atMs, leadMs, concluded, memory });
  for (let atMs = nextFrom(fromMs); atMs <= toMs && !signal.aborted; atMs = nextFrom(atMs + ROUND_MS)) {
    for (const { compute, lowering } of floors.notTriedUntil(atMs)) concluded.set(compute.computeId, lowering.atMs);
    const selected = computes.filter(({ compute }) => options.selects(compute, atMs));
    const computesThen = selected.map((one) => one.at(atMs));
    const loweredAtMs = loweredBy(selected, atMs, concluded);
    series.seek(atMs);
    const answer = await asker.ask({
      guard,
      source,
      computes: askedOf(computesThen),
      loweredAtMs,
      nowMs: atMs,
      signal,
    });
    if (answer.error) return { ok: false, error: answer.error };
    const judged = observed(computesThen, answer, { loweredAtMs, recordOf: () => undefined });
    const awake = maybeAwake(selected, answer, atMs);
    const awakeOnly = judged.map((one) => (awake.has(one.computeId) ? one : { ...one, state: undefined }));
    const step = watchRound(guard, memory, { atMs, computes: awakeOnly });
    ({ memory } = step);
    noteConcluded(concluded, memory);
    noteVerdicts(rowsOfRound.get(atMs) ?? [], answer, awake);
    noteStep(rows, floors, step, atMs);
    options.onProgress?.({ doneMs: atMs - fromMs, allMs: toMs - fromMs });
    await clock.nextTurn();
  }
  const lowerings = oldestFirst(rows).filter(({ lowering }) => lowering.atMs >= options.fromMs);
  return { ok: true, lowerings };
}

function oldestFirst(rows: ReadonlyMap<string, ReplayedLowering>): ReplayedLowering[] {
  return [...rows.values()].toSorted((a, b) => a.lowering.atMs - b.lowering.atMs);
}

/** Ends the watch of a lowering after a harm. A later lowering of the compute is watched again. */
function noteConcluded(concluded: Map<string, number>, { harms }: WatchMemory): void {
  for (const { computeId, loweredAtMs } of harms) {
    concluded.set(computeId, Math.max(loweredAtMs, concluded.get(computeId) ?? loweredAtMs));
  }
}

/** Adds what a round has found, and how long each compute has been watched. */
function noteStep(
  rows: ReadonlyMap<string, ReplayedLowering>,
  floors: ReturnType<typeof replayedFloors>,
  { events, memory }: WatchStep,
  atMs: number,
): void {
  for (const event of events) {
    const row = rows.get(keyOf(event));
    row?.events.push({ ...event, atMs });
    if (row && event.outcome === 'harm') floors.noteHarm(row, atMs);
  }
  for (const [computeId, { watch }] of Object.entries(memory.computes)) {
    if (!watch) continue;
    const row = rows.get(keyOf({ computeId, loweredAtMs: watch.loweredAtMs }));
    if (row) Object.assign(row, { sampledMs: watch.sampledMs, blindMs: watch.blindMs });
  }
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
  // Each entry may begin a watch, or end a watch in the round after the entry.
  const nextMs = one.nextEntryMs(atMs - ROUND_MS) - leadMs;
  if (!lowering || (watch?.isOver && watch.loweredAtMs === lowering.atMs)) return nextMs;
  // A bad stretch delays the end of a watch until the stretch is forgotten, even while the compute sleeps.
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

/** The computes that may be awake. If a compute's state is unknown, it counts as awake while the guard has values of it. */
function maybeAwake(selected: readonly ComputeInTime[], { verdicts }: GuardAnswer, atMs: number): ReadonlySet<string> {
  const awake = selected.filter((one) => one.isKnown(atMs) || verdicts.get(one.computeId)?.value !== undefined);
  return new Set(awake.map(({ computeId }) => computeId));
}

/** Notes, for each of these lowerings, the guard's verdict in the last round before it. */
function noteVerdicts(
  lowerings: readonly ReplayedLowering[],
  { verdicts }: GuardAnswer,
  awake: ReadonlySet<string>,
): void {
  for (const row of lowerings) {
    const { computeId } = row.compute;
    const verdict = awake.has(computeId) ? verdicts.get(computeId) : undefined;
    if (verdict && row.before !== 'not_asked') row.before = verdict;
  }
}

/** The floors that harms would have set under the present policies, by compute and group of fields, as decide/stages/floors.ts applies them. */
function replayedFloors(
  { guard, policies }: Pick<ReplayOptions, 'guard' | 'policies'>,
  rows: ReadonlyMap<string, ReplayedLowering>,
) {
  const floors = new Map<string, { fields: Change['from']; sinceMs: number }>();
  const { retryMs = Number.POSITIVE_INFINITY } = guard;
  let remaining = oldestFirst(rows);
  const isOfSet = ({ policy }: Change) => policy !== undefined && policies.has(policy);

  /** Returns since when a floor has prevented the change; undefined if no floor does. A change that begins above the floor is made, down to it. */
  function keptSinceMs({ compute, lowering }: ReplayedLowering, change: Change): number | undefined {
    const floor = floors.get(`${compute.computeId} ${change.group}`);
    if (!floor || !isOfSet(change) || !isWithinRetry(floor.sinceMs, retryMs, lowering.atMs)) return undefined;
    return isLower(change.to, floor.fields) && !isLower(floor.fields, change.from) ? floor.sinceMs : undefined;
  }

  return {
    /** Takes the lowerings up to an instant; marks and returns those that would not have been made. */
    notTriedUntil(atMs: number): ReplayedLowering[] {
      const taken = remaining.filter(({ lowering }) => lowering.atMs <= atMs);
      remaining = remaining.slice(taken.length);
      return taken.filter((row) => {
        const { changes } = row.lowering;
        const kept = changes.flatMap((change) => {
          const sinceMs = keptSinceMs(row, change);
          return sinceMs === undefined ? [] : [{ group: change.group, sinceMs }];
        });
        row.keptBack = kept.map(({ group }) => group);
        if (kept.length < changes.length) return false;
        row.notTriedSinceMs = Math.max(...kept.map(({ sinceMs }) => sinceMs));
        return true;
      });
    },
    noteHarm(row: ReplayedLowering, sinceMs: number): void {
      const isLowered = (change: Change) => isOfSet(change) && !row.keptBack?.includes(change.group);
      const changes = guard.remedy === 'notify' ? [] : row.lowering.changes.filter(isLowered);
      row.takenBack = changes.map(({ group }) => group);
      for (const { group, from } of changes) floors.set(`${row.compute.computeId} ${group}`, { fields: from, sinceMs });
    },
  };
}
