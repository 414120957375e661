/** The pace of a receiver: pauses after failures (of all messages or of one subject), and the limit of messages in an hour. */

import type { NotificationKind } from '../../domain/notifications/notification.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { QueuedEntry } from '../../ports/outbox.ts';

/** The pause after a failure, doubled with each that follows, in milliseconds. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** A receiver is paused after failures of this many subjects in a row: one message that always fails says nothing about the others. */
const MAX_FAILING_SUBJECTS = 4;

/** While all waiting messages are paused, the outbox is read again after this many milliseconds, or when their number changes. */
const READ_AGAIN_MS = 60_000;

/** Returns the pause after this many failures, at least one, in milliseconds. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

/** How many foldable messages a receiver gets in an hour, unless its settings say another number. */
export const DEFAULT_PER_HOUR = 20;

/** Kinds that may be folded into one message. The others, such as disruptions, failures and coming changes, are always sent singly. */
const FOLDABLE_KINDS: ReadonlySet<string> = new Set<NotificationKind>([
  'staged',
  'freeze',
  'hold',
  'manual_change',
  'budget_step',
  'spend_anomaly',
  'digest',
]);

/** Returns true for a kind that may be folded, and for the subject of such a message, which begins with the kind. */
export function canBeFolded(subject: string): boolean {
  return FOLDABLE_KINDS.has(subject.split(' ', 1)[0] ?? '');
}

/** The recent successes and failures of a receiver. */
export interface Pace {
  /** Sets the instants, ascending, at which any daemon has sent foldable messages within the last hour; milliseconds since the epoch. */
  setSent(sentAtMs: readonly number[]): void;
  /** Returns true if sending to the receiver is paused, or sending about the subject. */
  isPaused(subject?: string): boolean;
  /** Notes that all waiting messages were read, and that all of their subjects are paused. */
  noteAllPaused(waiting: readonly Pick<QueuedEntry, 'subject' | 'atMs'>[]): void;
  /** Returns true if reading the outbox would find nothing to send: as many messages wait as when it was read, and all are paused. */
  areAllPaused(waiting: number): boolean;
  /** Returns the instant of the oldest message that is late; one that only waits for room in the hour's limit is not. */
  oldestDueMs(oldestAtMs: number | undefined): number | undefined;
  /** Notes that one request has sent messages about these subjects. Returns the new instants for `setSent` if a message was foldable. */
  sent(subjects: readonly string[]): readonly number[] | undefined;
  /** Returns how many more foldable messages may be sent in this hour. If none may, foldable messages are paused until there is room. */
  room(perHour: number): number;
  /** Notes that one request with these messages has failed; `tries` counts those before it. Returns true for a first failure. */
  failed(messages: readonly Pick<QueuedEntry, 'subject' | 'tries'>[]): boolean;
}

export function createPace({ monotonicMs, now }: Pick<Clock, 'monotonicMs' | 'now'>): Pace {
  let sentAtMs: readonly number[] = [];
  /** The ends of pauses, in monotonic time: of the receiver, of subjects, and of all foldable messages. */
  let receiverUntilMs = Number.NEGATIVE_INFINITY;
  const subjectUntilMs = new Map<string, number>();
  let foldableUntilMs = Number.NEGATIVE_INFINITY;
  /** The subjects of the failures since the last success. */
  const failing = new Set<string>();
  /** While `waiting` messages wait, all of them are paused until `untilMs`. */
  let allPaused = { waiting: 0, untilMs: Number.NEGATIVE_INFINITY };
  /** The instant of the oldest waiting message that does not wait for room in the hour's limit. */
  let oldestDueMs: number | undefined;
  /** The number of the receiver's pauses since its last success. */
  let receiverPauses = 0;
  const pauseEndMs = (subject: string) => {
    const subjectMs = subjectUntilMs.get(subject) ?? Number.NEGATIVE_INFINITY;
    return canBeFolded(subject) ? Math.max(subjectMs, foldableUntilMs) : subjectMs;
  };

  return {
    isPaused: (subject = '') => monotonicMs() < Math.max(receiverUntilMs, pauseEndMs(subject)),
    setSent(instants) {
      sentAtMs = instants;
    },
    noteAllPaused(waiting) {
      const nowMs = monotonicMs();
      const subjects = new Set(waiting.map(({ subject }) => subject));
      const ends = [...subjects].map((subject) => Math.max(nowMs, pauseEndMs(subject)));
      allPaused = { waiting: waiting.length, untilMs: Math.min(nowMs + READ_AGAIN_MS, ...ends) };
      const due = waiting.filter(({ subject }) => !canBeFolded(subject)).map(({ atMs }) => atMs);
      oldestDueMs = due.length === 0 ? undefined : Math.min(...due);
    },
    oldestDueMs(oldestAtMs) {
      // One request sends all that wait for room, so none waits for longer than an hour.
      const isStuck = oldestAtMs !== undefined && now() - oldestAtMs > HOUR_MS;
      return monotonicMs() < foldableUntilMs && !isStuck ? oldestDueMs : oldestAtMs;
    },
    areAllPaused: (waiting) => waiting === allPaused.waiting && monotonicMs() < allPaused.untilMs,
    room(perHour) {
      const nowMs = now();
      // The clock of another daemon may be ahead.
      sentAtMs = sentAtMs.filter((atMs) => Math.abs(nowMs - atMs) < HOUR_MS);
      const room = Math.max(0, perHour - sentAtMs.length);
      const endMs = (sentAtMs.at(-perHour) ?? nowMs) + HOUR_MS;
      foldableUntilMs = room === 0 ? monotonicMs() + endMs - nowMs : Number.NEGATIVE_INFINITY;
      return room;
    },
    sent(subjects) {
      for (const subject of subjects) subjectUntilMs.delete(subject);
      failing.clear();
      receiverPauses = 0;
      if (!subjects.some(canBeFolded)) return undefined;
      sentAtMs = [...sentAtMs, now()];
      return sentAtMs;
    },
    failed(messages) {
      const isFirst = subjectUntilMs.size === 0;
      const nowMs = monotonicMs();
      const tries = Math.max(...messages.map((one) => one.tries));
      for (const { subject } of messages) subjectUntilMs.set(subject, nowMs + pauseMs(tries + 1));
      failing.add(messages[0]?.subject ?? '');
      if (failing.size >= MAX_FAILING_SUBJECTS) {
        failing.clear();
        receiverPauses += 1;
        receiverUntilMs = nowMs + pauseMs(receiverPauses);
      }
      return isFirst;
    },
  };
}
