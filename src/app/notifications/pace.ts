/** Pauses after failures, for all messages of a receiver that is down or only for a subject, and the limit of messages in an hour. */

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

/** Kinds that may be folded into one message. What disconnects, was undone or keeps failing, and coming changes are sent at once. */
const FOLDABLE_KINDS: readonly NotificationKind[] = [
  'staged',
  'freeze',
  'hold',
  'manual_change',
  'budget_step',
  'spend_anomaly',
  'digest',
];
const FOLDABLE: ReadonlySet<string> = new Set(FOLDABLE_KINDS);

/** Returns true for a kind that may be folded, and for the subject of such a message, which begins with the kind. */
export function canBeFolded(subject: string): boolean {
  return FOLDABLE.has(subject.split(' ', 1)[0] ?? '');
}

/** The recent successes and failures of a receiver. */
export interface Pace {
  /** Sets when foldable messages were sent within the last hour, ascending, milliseconds since the epoch: any daemon may have sent them. */
  setSent(sentAtMs: readonly number[]): void;
  /** Returns true if sending to the receiver is paused, or sending about the subject. */
  isPaused(subject?: string): boolean;
  /** Notes that all waiting messages were read, and that their subjects are paused. */
  allPaused(waiting: readonly Pick<QueuedEntry, 'subject' | 'atMs'>[]): void;
  /** Returns true if the outbox was read while this many messages waited, and their pauses have not ended: reading again would find nothing. */
  areAllPaused(waiting: number): boolean;
  /** Returns the instant of the oldest waiting message that should have been sent: one that waits for the hour to have room is not late. */
  oldestDueMs(oldestAtMs: number | undefined): number | undefined;
  /** Notes that one request has sent messages about these subjects. Returns the new instants for `setSent` if it was a foldable one. */
  sent(subjects: readonly string[]): readonly number[] | undefined;
  /** Returns how many more foldable messages may be sent in this hour; if none, they are paused until there is room. */
  room(perHour: number): number;
  /** Notes that one request with these messages has failed; `tries` counts those before it. Returns true for a first failure. */
  failed(messages: readonly Pick<QueuedEntry, 'subject' | 'tries'>[]): boolean;
}

export function createPace({ monotonicMs, now }: Pick<Clock, 'monotonicMs' | 'now'>): Pace {
  let sentAtMs: readonly number[] = [];
  /** The ends of pauses, in monotonic time: of the receiver, of subjects, and of all foldable messages. */
  let untilMs = Number.NEGATIVE_INFINITY;
  const subjectUntilMs = new Map<string, number>();
  let foldableUntilMs = Number.NEGATIVE_INFINITY;
  /** The subjects of the failures since the last success. */
  const failing = new Set<string>();
  /** While this many messages wait, all of them are paused until then. */
  let allPaused = { waiting: 0, untilMs: Number.NEGATIVE_INFINITY };
  /** The oldest of them that does not wait for the hour to have room. */
  let oldestDueMs: number | undefined;
  let pauses = 0;
  const pauseEndMs = (subject: string) => {
    const subjectMs = subjectUntilMs.get(subject) ?? Number.NEGATIVE_INFINITY;
    return canBeFolded(subject) ? Math.max(subjectMs, foldableUntilMs) : subjectMs;
  };

  return {
    isPaused: (subject = '') => monotonicMs() < Math.max(untilMs, pauseEndMs(subject)),
    setSent(known) {
      sentAtMs = known;
    },
    allPaused(waiting) {
      const nowMs = monotonicMs();
      const subjects = new Set(waiting.map(({ subject }) => subject));
      const ends = [...subjects].map((subject) => Math.max(nowMs, pauseEndMs(subject)));
      allPaused = { waiting: waiting.length, untilMs: Math.min(nowMs + READ_AGAIN_MS, ...ends) };
      const due = waiting.filter(({ subject }) => !canBeFolded(subject)).map(({ atMs }) => atMs);
      oldestDueMs = due.length === 0 ? undefined : Math.min(...due);
    },
    oldestDueMs(oldestAtMs) {
      // One request takes all that wait for room, so none waits for longer than the hour.
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
    sent(sent) {
      for (const subject of sent) subjectUntilMs.delete(subject);
      failing.clear();
      pauses = 0;
      if (!sent.some(canBeFolded)) return undefined;
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
        pauses += 1;
        untilMs = nowMs + pauseMs(pauses);
      }
      return isFirst;
    },
  };
}
