/** Pauses after failures: for all messages of a receiver that is down, or only for those behind a message that it refuses. */

import type { NotificationKind } from '../../domain/notifications/notification.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { QueuedEntry } from '../../ports/outbox.ts';

/** After a failure, doubled with each that follows, in milliseconds. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * Failures about this many subjects in a row mean that a receiver is down. A single message that is never accepted proves nothing about
 * the others, however often it fails.
 */
const MOST_IN_A_ROW = 4;

/** While all waiting messages are paused, the queue is read again after this, in milliseconds, or when their number changes. */
const READ_AGAIN_MS = 60_000;

/** The pause after this many failures, at least one; milliseconds. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

/** How many messages that can be folded a receiver gets in an hour, unless its settings say another number. */
export const DEFAULT_PER_HOUR = 20;

/** Never those about one compute, about coming changes, and about a key: these are sent at once, however many there are. */
const FOLDABLE: ReadonlySet<string> = new Set<NotificationKind>([
  ...(['staged', 'freeze', 'budget_step', 'spend_anomaly', 'digest'] as const),
]);

/** The subject of a message about no compute begins with its kind. */
export function canBeFolded(subject: string): boolean {
  return FOLDABLE.has(subject.split(' ', 1)[0] ?? '');
}

/** The recent successes and failures of a receiver. */
export interface Pace {
  /** Is sending to the receiver paused; with a subject: for that subject? */
  isPaused(subject?: string): boolean;
  /** All that waits was read, and is about these subjects, which are paused; one for each message. */
  allPaused(subjects: readonly string[]): void;
  /** True if, as far as is known, reading the outbox again would find nothing to send while this many wait. */
  areAllPaused(waiting: number): boolean;
  /** Notes that one request has sent messages about these subjects. */
  sent(subjects: readonly string[]): void;
  /** How many more that can be folded may be sent in this hour; if none, they are paused until there is room. */
  room(perHour: number): number;
  /** Notes that one request has failed, with what it was to send; `tries` before it. True if nothing else had failed before. */
  failed(messages: readonly Pick<QueuedEntry, 'subject' | 'tries'>[]): boolean;
}

/** `sentMs`: when messages that can be folded were sent within the last hour, ascending; kept while nothing waits. */
export function createPace({ monotonicMs }: Pick<Clock, 'monotonicMs'>, sentMs: number[]): Pace {
  /** Until when they are left alone, by the monotonic clock. */
  const subjects = new Map<string, number>();
  let untilMs = Number.NEGATIVE_INFINITY;
  /** Those of the failures since the last success. */
  const failing = new Set<string>();
  let known = { waiting: 0, untilMs: Number.NEGATIVE_INFINITY };
  let pauses = 0;
  let foldedUntilMs = Number.NEGATIVE_INFINITY;
  const pauseEndMs = (subject: string) =>
    Math.max(
      subjects.get(subject) ?? Number.NEGATIVE_INFINITY,
      canBeFolded(subject) ? foldedUntilMs : Number.NEGATIVE_INFINITY,
    );

  return {
    isPaused(subject = '') {
      return monotonicMs() < Math.max(untilMs, pauseEndMs(subject));
    },
    allPaused(paused) {
      const nowMs = monotonicMs();
      const ends = [...new Set(paused)].map((subject) => Math.max(nowMs, pauseEndMs(subject)));
      known = { waiting: paused.length, untilMs: Math.min(nowMs + READ_AGAIN_MS, ...ends) };
    },
    areAllPaused: (waiting) => waiting === known.waiting && monotonicMs() < known.untilMs,
    room(perHour) {
      const nowMs = monotonicMs();
      while ((sentMs[0] ?? nowMs) <= nowMs - HOUR_MS) sentMs.shift();
      const room = Math.max(0, perHour - sentMs.length);
      if (room === 0) foldedUntilMs = (sentMs[sentMs.length - perHour] ?? nowMs) + HOUR_MS;
      return room;
    },
    sent(sent) {
      if (sent.some(canBeFolded)) sentMs.push(monotonicMs());
      for (const subject of sent) subjects.delete(subject);
      failing.clear();
      pauses = 0;
    },
    failed(messages) {
      const isNews = subjects.size === 0;
      const nowMs = monotonicMs();
      const tries = Math.max(...messages.map((one) => one.tries));
      for (const { subject } of messages) subjects.set(subject, nowMs + pauseMs(tries + 1));
      failing.add(messages[0]?.subject ?? '');
      if (failing.size >= MOST_IN_A_ROW) {
        failing.clear();
        pauses += 1;
        untilMs = nowMs + pauseMs(pauses);
      }
      return isNews;
    },
  };
}
