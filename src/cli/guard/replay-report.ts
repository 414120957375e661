/** The result of a guard's replay, a row for each lowering. Instants are milliseconds since the epoch. */

import type { ReplayedLowering } from '../../app/guards/replay.ts';
import type { GuardReplay } from '../../compose/guard-replay.ts';
import type { ComputeSettings } from '../../domain/compute/compute.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';

const OUTCOMES = [
  'healthy',
  'harm',
  'common_cause',
  'no_samples',
  'unfinished',
  'not_tried_again',
  'not_known',
] as const;
type Outcome = (typeof OUTCOMES)[number];

/** The guard's reaction to a harm; `undone_asleep`: undone at the next sleep. */
type Remedy = 'notified' | 'undone' | 'undone_asleep';

export interface ReplayRow extends ReplayedLowering {
  from: Partial<ComputeSettings>;
  to: Partial<ComputeSettings>;
  policies: readonly string[];
  /**
   * `unfinished`: the compute was changed again, slept or was still watched before the guard could tell. `not_tried_again`: the lowering would
   * not have been made. `not_known`: the source has no samples of that time.
   */
  outcome: Outcome;
  isHeldBack: boolean;
  harm?: { badSinceMs: number | undefined; foundAtMs: number };
  remedy?: Remedy;
  /** The number of connections that an immediate undo of the size would have dropped. */
  connections?: number;
}

export function replayRows(guard: GuardPolicy, { lowerings, ownMs, anyMs, connections }: GuardReplay): ReplayRow[] {
  const dataMs = Math.min(ownMs ?? Number.POSITIVE_INFINITY, anyMs ?? Number.POSITIVE_INFINITY);
  return lowerings.map((one) => {
    const { lowering, before, events, notTriedSinceMs } = one;
    const { changes, atMs } = lowering;
    const isMade = atMs >= dataMs && notTriedSinceMs === undefined;
    const harm = isMade ? events.find(({ outcome }) => outcome === 'harm') : undefined;
    return {
      ...one,
      policies: [...new Set(changes.flatMap(({ policy }) => policy ?? []))],
      from: Object.assign({}, ...changes.map(({ from }) => from)),
      to: Object.assign({}, ...changes.map(({ to }) => to)),
      outcome: atMs < dataMs ? 'not_known' : outcomeOf(one),
      isHeldBack: isMade && typeof before === 'object' && before.state !== 'healthy',
      ...(harm && { harm: { badSinceMs: harm.badSinceMs, foundAtMs: harm.atMs } }),
      ...(harm && remedyOf(guard, one, connections.get(one))),
    };
  });
}

function outcomeOf({ events, notTriedSinceMs }: ReplayedLowering): Outcome {
  if (notTriedSinceMs !== undefined) return 'not_tried_again';
  const outcomes = events.map(({ outcome }) => outcome);
  for (const one of ['harm', 'common_cause', 'no_samples', 'healthy'] as const) if (outcomes.includes(one)) return one;
  return 'unfinished';
}

/** The remedy of a harm. An immediate undo of the size restarts the compute, and drops its connections. */
function remedyOf(
  { remedy }: GuardPolicy,
  { takenBack = [] }: ReplayedLowering,
  connections: number | undefined,
): Pick<ReplayRow, 'remedy' | 'connections'> {
  if (takenBack.length === 0) return { remedy: 'notified' };
  if (!takenBack.includes('size')) return { remedy: 'undone', connections: 0 };
  if (remedy === 'undo') return { remedy: 'undone_asleep', connections: 0 };
  return { remedy: 'undone', ...(connections !== undefined && { connections }) };
}

type Sums = Record<Outcome, number> & {
  lowerings: number;
  held_back: number;
  undone: number;
  connections_dropped: number | null;
};

/** Counts the outcomes. `connections_dropped` is null if it is unknown for one of the undos. */
export function sumsOf(rows: readonly ReplayRow[]): Sums {
  const count = (test: (row: ReplayRow) => boolean) => rows.filter(test).length;
  const undone = rows.filter(({ remedy }) => remedy?.startsWith('undone'));
  const isKnown = undone.every(({ connections }) => connections !== undefined);
  const byOutcome = OUTCOMES.map((one) => [one, count(({ outcome }) => outcome === one)] as const);
  return {
    ...(Object.fromEntries(byOutcome) as Record<Outcome, number>),
    lowerings: rows.length,
    held_back: count(({ isHeldBack }) => isHeldBack),
    undone: undone.length,
    connections_dropped: isKnown ? undone.reduce((sum, { connections = 0 }) => sum + connections, 0) : null,
  };
}
