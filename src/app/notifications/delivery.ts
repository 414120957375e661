/**
 * Delivers the outbox to its receivers: at least once, in order for each subject. Each receiver has a lease and a pace of its own, so that
 * a slow one delays no other, and a refused message delays only those about its subject. Nothing that changes computes waits for any of
 * this.
 */

import pLimit from 'p-limit';
import { thenCleanUp } from '../../common/errors.ts';
import type { Receiver } from '../../domain/notifications/notification.ts';
import type { Clock } from '../../ports/clock.ts';
import type { QueuedEntry, Sender, SendOutcome } from '../../ports/outbox.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { CurrentRules } from '../rules.ts';
import { messageId } from './notify.ts';

/** Interval between checks of the outbox, in real milliseconds. */
const CHECK_EVERY_MS = 1_000;

/** The lease of a receiver outlives the longest exchange; beyond this age it is renewed before a message is sent. Real milliseconds. */
const LEASE_MS = 30_000;
const RENEW_AFTER_MS = 10_000;

/** Messages that are read at once, and how many of different subjects are sent at a time. */
const BATCH = 100;
const AT_A_TIME = 4;

/** A message that could not be sent for this long is dead: a person may try it again. Milliseconds. */
const GIVE_UP_AFTER_MS = 24 * 3_600_000;

/** Another daemon of the group may have newer settings, which define it: the message waits for that one. */
const UNKNOWN = 'ebb.yaml of this daemon does not define this receiver';

type DeliveryStore = Pick<
  Store,
  'acquireLease' | 'renewLease' | 'releaseLease' | 'outbox' | 'outboxCounts' | 'deferOutbox' | 'removeOutbox'
>;

export interface DeliveryDeps {
  store: DeliveryStore;
  sender: Sender;
  rules: CurrentRules;
  clock: Clock;
  telemetry: Telemetry;
  runInBackground: RunInBackground;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
}

/** Checks the outbox until it is closed. A message that is being sent then is given up, and sent again by the next daemon. */
export function startDelivery(deps: DeliveryDeps): Running {
  const { clock } = deps;
  const stopped = new AbortController();
  const paces = new Map<string, Pace>();
  const busy = new Map<string, Promise<void>>();

  async function check(): Promise<void> {
    const { receivers, lost } = await deps.store.outboxCounts();
    showOutbox(deps, receivers, lost);
    const counts = new Map(receivers.filter((one) => one.waiting > 0).map((one) => [one.receiver, one.waiting]));
    for (const name of paces.keys()) if (!counts.has(name)) paces.delete(name);
    for (const [receiver, waiting] of counts) {
      if (busy.has(receiver)) continue;
      const pace = paces.get(receiver) ?? createPace(clock);
      paces.set(receiver, pace);
      if (pace.isPaused() || pace.areAllPaused(waiting)) continue;
      const work = deps.runInBackground('notifications', () => deliver(deps, receiver, pace, stopped.signal));
      busy.set(
        receiver,
        work.finally(() => busy.delete(receiver)),
      );
    }
  }

  const round = clock.every(CHECK_EVERY_MS, () => deps.runInBackground('notifications', check));
  return {
    async close() {
      stopped.abort();
      await round.close();
      await Promise.all(busy.values());
    },
  };
}

/** Sends the messages of one receiver, until only failed ones are left. Does nothing while another daemon is at it. */
async function deliver(deps: DeliveryDeps, name: string, pace: Pace, signal: AbortSignal): Promise<void> {
  const lease = await deps.store.acquireLease(`notify-${name}`, deps.holder, LEASE_MS);
  if (!lease) return;
  const isHeld = heldCheck(deps, lease);
  const deliverAll = async () => {
    let limit = BATCH;
    while (!pace.isPaused()) {
      const entries = await deps.store.outbox({ receiver: name, state: 'waiting', limit });
      const due = entries.filter(({ subject }) => !pace.isPaused(subject));
      const receiver = deps.rules.current.notify.receivers.find((one) => one.name === name);
      if (due.length > 0 && !(await deliverBatch(deps, receiver, due, { isHeld, pace, signal }))) return;
      if (due.length > 0) continue;
      if (entries.length < limit) return pace.allPaused(entries.map(({ subject }) => subject));
      // There may be more behind failed messages.
      limit *= 10;
    }
  };
  return thenCleanUp(deliverAll, () => deps.store.releaseLease(lease));
}

/** Checks that the lease is still held, and renews an old one. */
function heldCheck({ store, clock }: DeliveryDeps, lease: Lease): () => Promise<boolean> {
  let renewedMs = clock.monotonicMs();
  return async () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - renewedMs < RENEW_AFTER_MS) return true;
    if (!(await store.renewLease(lease, LEASE_MS))) return false;
    renewedMs = nowMs;
    return true;
  };
}

interface Occasion {
  isHeld(): Promise<boolean>;
  pace: Pace;
  signal: AbortSignal;
}

/** In order for each subject, several subjects at a time, those that have not failed first; false once it is to end. */
async function deliverBatch(
  deps: DeliveryDeps,
  receiver: Receiver | undefined,
  entries: readonly QueuedEntry[],
  occasion: Occasion,
): Promise<boolean> {
  const subjects = new Set(entries.toSorted((a, b) => a.tries - b.tries).map(({ subject }) => subject));
  let goesOn = true;
  await pLimit(AT_A_TIME).map(subjects, async (subject) => {
    for (const entry of entries.filter((one) => one.subject === subject)) {
      if (!goesOn || occasion.pace.isPaused(subject)) return;
      goesOn = (await deliverOne(deps, receiver, entry, occasion)) && goesOn;
    }
  });
  return goesOn;
}

/** False if nothing may be sent after it. */
async function deliverOne(
  deps: DeliveryDeps,
  receiver: Receiver | undefined,
  entry: QueuedEntry,
  { isHeld, pace, signal }: Occasion,
): Promise<boolean> {
  if (signal.aborted || !(await isHeld())) return false;
  const outcome: SendOutcome = receiver
    ? await deps.sender.send(receiver, { id: messageId(entry), body: entry.body }, signal)
    : { ok: false, isRefused: false, message: UNKNOWN };
  if (outcome.ok) await sent(deps, entry, pace);
  else if (signal.aborted) return false;
  else await failed(deps, entry, outcome, pace);
  return true;
}

async function sent({ store, telemetry }: DeliveryDeps, entry: QueuedEntry, pace: Pace): Promise<void> {
  await store.removeOutbox(entry.id);
  pace.sent(entry.subject);
  telemetry.metrics.increment('ebb_notifications_total', { receiver: entry.receiver, result: 'sent' });
}

async function failed(
  { store, clock, telemetry: { log, metrics } }: DeliveryDeps,
  { id, receiver, subject, atMs, tries }: QueuedEntry,
  { isRefused, message }: { isRefused: boolean; message: string },
  pace: Pace,
): Promise<void> {
  const isDead = isRefused || clock.now() - atMs >= GIVE_UP_AFTER_MS;
  await store.deferOutbox(id, { state: isDead ? 'dead' : 'waiting', tries: tries + 1, error: message });
  metrics.increment('ebb_notifications_total', { receiver, result: isDead ? 'dead' : 'failed' });
  // A refusal is about the message; the receiver works.
  const isNews = !isRefused && pace.failed(subject, tries + 1);
  if (isDead) {
    log.error(
      { event: 'ebb.notification_dead', receiver, id },
      `a notification could not be sent to ${receiver} (${message}) and is not tried again: ebb notify list`,
    );
  } else if (isNews) {
    const fields = { event: 'ebb.notification_failed', receiver, id };
    log.warn(fields, `${receiver} does not take notifications (${message}); they wait and are tried again`);
  }
}

function showOutbox(
  { telemetry: { metrics }, clock }: DeliveryDeps,
  receivers: Awaited<ReturnType<DeliveryStore['outboxCounts']>>['receivers'],
  lost: number,
): void {
  for (const name of GAUGES) metrics.clear(name);
  for (const { receiver, waiting, dead, oldestAtMs } of receivers) {
    metrics.set('ebb_notifications_waiting', { receiver }, waiting);
    metrics.set('ebb_notifications_dead', { receiver }, dead);
    const ageMs = oldestAtMs === undefined ? 0 : Math.max(0, clock.now() - oldestAtMs);
    metrics.set('ebb_notifications_oldest_seconds', { receiver }, ageMs / 1000);
  }
  metrics.set('ebb_notifications_lost', {}, lost);
}

const GAUGES = ['ebb_notifications_waiting', 'ebb_notifications_dead', 'ebb_notifications_oldest_seconds'] as const;

/* Pauses after failures: for all messages of a receiver that is down, or only for those behind a message that it refuses. */

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

/** The recent successes and failures of a receiver. */
interface Pace {
  /** Is sending to the receiver paused; with a subject: for that subject? */
  isPaused(subject?: string): boolean;
  /** All that waits was read, and is about these subjects, which are paused; one for each message. */
  allPaused(subjects: readonly string[]): void;
  /** True if, as far as is known, reading the outbox again would find nothing to send while this many wait. */
  areAllPaused(waiting: number): boolean;
  sent(subject: string): void;
  /** Notes the given number of failures of a message about the subject. True if nothing else had failed before. */
  failed(subject: string, tries: number): boolean;
}

function createPace({ monotonicMs }: Pick<Clock, 'monotonicMs'>): Pace {
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
