/** Pauses after failures: for all messages of a receiver that is down, or only for the subject of a message that failed. */

import type { NotificationKind } from '../../domain/notifications/notification.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { QueuedEntry } from '../../ports/outbox.ts';

/** The pause after a failure, doubled with each that follows, in milliseconds. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** After failures about this many subjects in a row, a receiver is down. A single message that always fails proves nothing about others. */
const MAX_FAILING_SUBJECTS = 4;

/** While all waiting messages are paused, the queue is read again after this, in milliseconds, or when their number changes. */
const READ_AGAIN_MS = 60_000;

/** Returns the pause after this many failures, at least one, in milliseconds. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

/** How many foldable messages a receiver gets in an hour, unless its settings say another number. */
export const DEFAULT_PER_HOUR = 20;

/** Kinds that may be folded into one message. Those about one compute, coming changes or a key are sent at once, however many there are. */
const FOLDABLE_KINDS: readonly NotificationKind[] = ['staged', 'freeze', 'budget_step', 'spend_anomaly', 'digest'];
const FOLDABLE: ReadonlySet<string> = new Set(FOLDABLE_KINDS);

/** Returns true for the subject of a foldable message; it begins with the kind, since the message is about no compute. */
export function canBeFolded(subject: string): boolean {
  return FOLDABLE.has(subject.split(' ', 1)[0] ?? '');
}

/** The recent successes and failures of a receiver. */
export interface Pace {
  /** Returns true if sending to the receiver is paused, or sending about the subject. */
  isPaused(subject?: string): boolean;
  /** Notes that all waiting messages were read, and that their subjects, one for each message, are paused. */
  allPaused(subjects: readonly string[]): void;
  /** Returns true if the outbox was read while this many messages waited, and their pauses last: reading again would find nothing. */
  areAllPaused(waiting: number): boolean;
  /** Notes that one request has sent messages about these subjects. */
  sent(subjects: readonly string[]): void;
  /** Returns how many more foldable messages may be sent in this hour; if none, they are paused until there is room. */
  room(perHour: number): number;
  /** Notes that one request with these messages has failed; `tries` counts those before it. Returns true for a first failure. */
  failed(messages: readonly Pick<QueuedEntry, 'subject' | 'tries'>[]): boolean;
}

/** `sentMs`: when foldable messages were sent within the last hour, ascending, in monotonic time; the caller keeps it while nothing waits. */
export function createPace({ monotonicMs }: Pick<Clock, 'monotonicMs'>, sentMs: number[]): Pace {
  /** The ends of pauses, in monotonic time: of the receiver, of subjects, and of all foldable messages. */
  let untilMs = Number.NEGATIVE_INFINITY;
  const subjectUntilMs = new Map<string, number>();
  let foldableUntilMs = Number.NEGATIVE_INFINITY;
  /** The subjects of the failures since the last success. */
  const failing = new Set<string>();
  /** While this many messages wait, all of them are paused until then. */
  let allPaused = { waiting: 0, untilMs: Number.NEGATIVE_INFINITY };
  let pauses = 0;
  const pauseEndMs = (subject: string) => {
    const subjectMs = subjectUntilMs.get(subject) ?? Number.NEGATIVE_INFINITY;
    return canBeFolded(subject) ? Math.max(subjectMs, foldableUntilMs) : subjectMs;
  };

  return {
    isPaused: (subject = '') => monotonicMs() < Math.max(untilMs, pauseEndMs(subject)),
    allPaused(paused) {
      const nowMs = monotonicMs();
      const ends = [...new Set(paused)].map((subject) => Math.max(nowMs, pauseEndMs(subject)));
      allPaused = { waiting: paused.length, untilMs: Math.min(nowMs + READ_AGAIN_MS, ...ends) };
    },
    areAllPaused: (waiting) => waiting === allPaused.waiting && monotonicMs() < allPaused.untilMs,
    room(perHour) {
      const nowMs = monotonicMs();
      while ((sentMs[0] ?? nowMs) <= nowMs - HOUR_MS) sentMs.shift();
      const room = Math.max(0, perHour - sentMs.length);
      if (room === 0) foldableUntilMs = (sentMs[sentMs.length - perHour] ?? nowMs) + HOUR_MS;
      return room;
    },
    sent(sent) {
      if (sent.some(canBeFolded)) sentMs.push(monotonicMs());
      for (const subject of sent) subjectUntilMs.delete(subject);
      failing.clear();
      pauses = 0;
    },
    failed(messages) {
      const isFirst = subjectUntilMs.size === 0;
      const nowMs = monotonicMs();
      const tries = Math.max(...messages.map((one) => one.tries));
      for (const { subject } of messages) subjectUntilMs.set(subject, nowMs + pauseMs(tries + 1));
      failing.add(messages[0]?.subject ?? '');
      if (failing.size >= MAX_FAILING_SUBJECTS) {
        failing.clear();
        pauses += 1;
        untilMs = nowMs + pauseMs(pauses);
      }
      return isFirst;
    },
  };
}
