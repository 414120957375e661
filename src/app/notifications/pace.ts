/** Pauses after failures: for all messages of a receiver that is down, or only for those behind a message that it refuses. */
import type { Clock } from '../../ports/clock.ts';

/** After a failure, doubled with each that follows, in milliseconds. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * Failures about so many subjects, with no success in between, say that a receiver is down. A single message that is never taken says
 * nothing about the others, however often it fails.
 */
const MOST_IN_A_ROW = 4;

/** While all that waits is paused, the queue is read again after this, in milliseconds, or when the number of those that wait changes. */
const READ_AGAIN_MS = 60_000;

/** The pause after this many failures, at least one; milliseconds. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

/** The recent successes and failures of a receiver. */
export interface Pace {
  /** Is sending to the receiver paused; with a subject: for that subject? */
  isPaused(subject?: string): boolean;
  /** All that waits was read, and is about these subjects, which are paused; one for each message. */
  allPaused(subjects: readonly string[]): void;
  /** True if, as far as is known, reading the outbox again would find nothing to send while this many wait. */
  areAllPaused(waiting: number): boolean;
  sent(subject: string): void;
  /** A message about the subject has failed so many times. True if nothing else had failed before. */
  failed(subject: string, tries: number): boolean;
}

export function createPace({ monotonicMs }: Pick<Clock, 'monotonicMs'>): Pace {
  /** Until when they are left alone, by the monotonic clock. */
  const subjects = new Map<string, number>();
  let untilMs = Number.NEGATIVE_INFINITY;
  /** Those of the failures since the last success. */
  const failing = new Set<string>();
  let known = { waiting: 0, untilMs: Number.NEGATIVE_INFINITY };
  let pauses = 0;

  return {
    isPaused(subject = '') {
      const nowMs = monotonicMs();
      return nowMs < untilMs || nowMs < (subjects.get(subject) ?? nowMs);
    },
    allPaused(paused) {
      const nowMs = monotonicMs();
      const ends = [...new Set(paused)].map((subject) => subjects.get(subject) ?? nowMs);
      known = { waiting: paused.length, untilMs: Math.min(nowMs + READ_AGAIN_MS, ...ends) };
    },
    areAllPaused: (waiting) => waiting === known.waiting && monotonicMs() < known.untilMs,
    sent(subject) {
      subjects.delete(subject);
      failing.clear();
      pauses = 0;
    },
    failed(subject, tries) {
      const isNews = subjects.size === 0;
      const nowMs = monotonicMs();
      subjects.set(subject, nowMs + pauseMs(tries));
      failing.add(subject);
      if (failing.size >= MOST_IN_A_ROW) {
        failing.clear();
        pauses += 1;
        untilMs = nowMs + pauseMs(pauses);
      }
      return isNews;
    },
  };
}
