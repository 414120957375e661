import pLimit from 'p-limit';
import type { Clock } from '../../ports/clock.ts';

/** Concurrent writes: enough to keep the control API busy while the next ones are decided. */
const CONCURRENT_WRITES = 64;

/** How many writes are decided concurrently: enough to keep the store busy. With more, all would be sent late, since they share the processor. */
const CONCURRENT_DECISIONS = 16;

/** The work after a write yields to due writes for at most this long, in real milliseconds: its lease must not expire meanwhile. */
const MAX_YIELD_MS = 2_000;

/** A write that is due and has not been answered yet. */
export interface DueWrite {
  /** Notes that its request is about to be sent, so that another write may be decided. A second call has no effect. */
  sent(): void;
  /** Ends the write: nothing more will be sent. A second call has no effect. */
  end(): void;
  /** Ends the write after its answer. Resolves once no other write is due, or after `mostMs`, at most 2 s. */
  endAndYield(mostMs: number): Promise<void>;
}

export interface DueWrites {
  /** Resolves when it is the write's turn, in the order of the calls. */
  begin(): Promise<DueWrite>;
}

/**
 * Orders the writes of one boundary. The work that follows a write (its record, the log, the next trigger) waits until the last write
 * is answered, so that it does not delay other computes. If the daemon dies meanwhile, the pending writes remain in the store.
 */
export function createDueWrites(clock: Pick<Clock, 'wait'>): DueWrites {
  const writes = pLimit(CONCURRENT_WRITES);
  const decisions = pLimit(CONCURRENT_DECISIONS);
  let dueCount = 0;
  let yielding: (() => void)[] = [];

  function writeEnded(): void {
    dueCount -= 1;
    if (dueCount > 0) return;
    for (const resume of yielding) resume();
    yielding = [];
  }

  async function yieldToDueWrites(mostMs: number): Promise<void> {
    if (dueCount === 0) return;
    const allEnded = new Promise<void>((resolve) => yielding.push(resolve));
    const stopWait = new AbortController();
    await Promise.race([allEnded, clock.wait(Math.min(mostMs, MAX_YIELD_MS), stopWait.signal).catch(() => {})]);
    // Without a reason, `abort` would create an error with a stack for each call.
    stopWait.abort('the wait has ended');
  }

  return {
    begin() {
      dueCount += 1;
      return new Promise((resolve) => {
        const decide = (end: () => void) =>
          new Promise<void>((sent) => {
            const endOnce = () => {
              sent();
              end();
            };
            resolve({
              sent,
              end: endOnce,
              async endAndYield(mostMs) {
                endOnce();
                await yieldToDueWrites(mostMs);
              },
            });
          });
        // A write holds its place among decisions until it is sent, and its place among writes until it ends.
        void writes(async () => {
          await new Promise<void>((end) => void decisions(() => decide(end)));
          writeEnded();
        });
      });
    },
  };
}
