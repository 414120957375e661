import pLimit from 'p-limit';
import type { Clock } from '../../ports/clock.ts';

/** As many as keep the control API busy while the next are decided. */
const AT_A_TIME = 64;

/** Work after a write yields to due writes for at most this long, in real milliseconds: the lease goes on meanwhile. */
const MOST_MS = 2_000;

/** A write that is due and has not been answered yet. */
export interface DueWrite {
  /** Nothing is to be sent any more. Does nothing after another end. */
  end(): void;
  /** Call it after the answer. Resolves once no other write is due, or after this many milliseconds, and 2 s at most. */
  endAndGiveWay(mostMs: number): Promise<void>;
}

export interface DueWrites {
  /** Resolves when it is its turn; those who ask first come first. */
  begin(): Promise<DueWrite>;
}

/**
 * The writes of one boundary, in the order in which they begin. Work that follows a write (its record, the log, the next trigger) yields
 * until the last is answered, so that the first computes' bookkeeping does not delay the last. If the daemon dies meanwhile, the intents
 * remain.
 */
export function createDueWrites(clock: Pick<Clock, 'wait'>): DueWrites {
  const inTurn = pLimit(AT_A_TIME);
  let due = 0;
  let givingWay: (() => void)[] = [];

  function leave(): void {
    due -= 1;
    if (due > 0) return;
    for (const goOn of givingWay) goOn();
    givingWay = [];
  }

  async function giveWay(mostMs: number): Promise<void> {
    if (due === 0) return;
    const allLeft = new Promise<void>((resolve) => givingWay.push(resolve));
    const over = new AbortController();
    await Promise.race([allLeft, clock.wait(Math.min(mostMs, MOST_MS), over.signal).catch(() => {})]);
    over.abort();
  }

  return {
    begin() {
      due += 1;
      return new Promise((resolve) => {
        void inTurn(async () => {
          await new Promise<void>((end) => {
            resolve({
              end,
              async endAndGiveWay(mostMs) {
                end();
                await giveWay(mostMs);
              },
            });
          });
          leave();
        });
      });
    },
  };
}
