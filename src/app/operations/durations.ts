import type { OpenOperation } from '../../domain/records/compute-record.ts';
import type { Operation } from '../../ports/control-api.ts';

/** The assumed duration of an operation until one was measured, in milliseconds. */
const UNKNOWN_MS = 2_000;
/** The platform's instants may be in whole seconds, and a check that comes a little early costs a second one. */
const MARGIN_MS = 250;
/** An exception must not keep the checks away for long. */
const MOST_MS = 10_000;
/** Durations remembered for each action. */
const REMEMBERED = 5;

/** Recent durations of operations by action, which tell when to check for the end of one. Kept in memory: it is soon learnt again. */
export interface OperationDurations {
  learn(ended: Operation): void;
  /** The likely end of these operations, milliseconds since the epoch. */
  expectedEndMs(open: readonly OpenOperation[]): number;
}

export function createOperationDurations(): OperationDurations {
  const recent = new Map<string, number[]>();

  function expectedMs(action: string): number {
    const known = recent.get(action)?.toSorted((a, b) => a - b) ?? [];
    const usualMs = known[Math.floor(known.length / 2)];
    return usualMs === undefined ? UNKNOWN_MS : Math.min(MOST_MS, usualMs + MARGIN_MS);
  }

  return {
    learn({ action, createdAtMs, updatedAtMs, totalDurationMs, outcome }) {
      if (outcome !== 'succeeded') return;
      const durationMs = Math.max(totalDurationMs ?? 0, updatedAtMs - createdAtMs);
      recent.set(action, [durationMs, ...(recent.get(action) ?? [])].slice(0, REMEMBERED));
    },
    expectedEndMs: (open) => Math.max(...open.map(({ action, startedAtMs }) => startedAtMs + expectedMs(action))),
  };
}
