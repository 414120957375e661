/** How long what fails is left alone: all that waits for a receiver that is down, or only what is behind a message that it does not take. */
import type { Clock } from '../../ports/clock.ts';

/** After a failure, doubled with each that follows, in milliseconds. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** So many failures of a receiver, with no success in between, say that it is down. */
const MOST_IN_A_ROW = 4;

/** How long to wait after so many failures, at least one; milliseconds. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

/** How it went with a receiver of late. */
export interface Pace {
  /** Whether nothing may be sent to it now; of a subject: nothing about that. */
  isPaused(subject?: string): boolean;
  sent(subject: string): void;
  /** A message about the subject has failed so many times. True if nothing else had failed before. */
  failed(subject: string, tries: number): boolean;
}

export function createPace({ monotonicMs }: Pick<Clock, 'monotonicMs'>): Pace {
  /** Until when they are left alone, by the monotonic clock. */
  const subjects = new Map<string, number>();
  let untilMs = Number.NEGATIVE_INFINITY;
  let inARow = 0;
  let pauses = 0;

  return {
    isPaused(subject = '') {
      const nowMs = monotonicMs();
      return nowMs < untilMs || nowMs < (subjects.get(subject) ?? nowMs);
    },
    sent(subject) {
      subjects.delete(subject);
      inARow = 0;
      pauses = 0;
    },
    failed(subject, tries) {
      const isNews = subjects.size === 0;
      const nowMs = monotonicMs();
      subjects.set(subject, nowMs + pauseMs(tries));
      inARow += 1;
      if (inARow >= MOST_IN_A_ROW) {
        inARow = 0;
        pauses += 1;
        untilMs = nowMs + pauseMs(pauses);
      }
      return isNews;
    },
  };
}
