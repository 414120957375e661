/**
 * Delivers the outbox to its receivers: at least once, in order for each subject. Each receiver has a lease and a pace of its own, so that
 * a slow one delays no other, and a refused message delays only those about its subject. Nothing that changes computes waits for any of
 * this.
 */

import pLimit from 'p-limit';
import { thenCleanUp } from '../../common/errors.ts';
import { messageOf, type NotificationKind, type Receiver } from '../../domain/notifications/notification.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
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
  const sent = new Map<string, number[]>();
  const busy = new Map<string, Promise<void>>();

  function paceOf(receiver: string): Pace {
    const sentMs = sent.get(receiver) ?? [];
    const pace = paces.get(receiver) ?? createPace(clock, sentMs);
    paces.set(receiver, pace);
    sent.set(receiver, sentMs);
    return pace;
  }

  async function check(): Promise<void> {
    const { receivers, lost } = await deps.store.outboxCounts();
    showOutbox(deps, receivers, lost);
    const counts = new Map(receivers.filter((one) => one.waiting > 0).map((one) => [one.receiver, one.waiting]));
    for (const name of paces.keys()) if (!counts.has(name)) paces.delete(name);
    for (const [receiver, waiting] of counts) {
      if (busy.has(receiver)) continue;
      const pace = paceOf(receiver);
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
      const receiver = deps.rules.current.notify.receivers.find((one) => one.name === name);
      const ready = entries.filter(({ subject }) => !pace.isPaused(subject));
      if (ready.length > 0 && !(await deliverReady(deps, receiver, ready, { isHeld, pace, signal }))) return;
      if (ready.length > 0) continue;
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

/** Sends what the receiver's limit allows, and the rest in one message; false once it is to end. */
async function deliverReady(
  deps: DeliveryDeps,
  receiver: Receiver | undefined,
  entries: readonly QueuedEntry[],
  occasion: Occasion,
): Promise<boolean> {
  if (!receiver) return deliverBatch(deps, receiver, entries, occasion);
  const { due, folded } = withinLimit(entries, receiver, occasion.pace);
  if (!(await deliverBatch(deps, receiver, due, occasion))) return false;
  return folded.length === 0 || deliverFolded(deps, receiver, folded, occasion);
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

/**
 * Separates what is sent as it is from what the receiver's limit folds into one message. Once the limit is reached, `pace` holds all that
 * can be folded until the hour has room again.
 */
function withinLimit(
  entries: readonly QueuedEntry[],
  { perHour = DEFAULT_PER_HOUR }: Receiver,
  pace: Pace,
): { due: readonly QueuedEntry[]; folded: readonly QueuedEntry[] } {
  const foldable = entries.filter(({ subject }) => canBeFolded(subject));
  const room = pace.room(perHour);
  if (foldable.length <= room) return { due: entries, folded: [] };
  if (room === 0) return { due: entries.filter(({ subject }) => !canBeFolded(subject)), folded: [] };
  const folded = foldable.slice(room - 1);
  return { due: entries.filter((entry) => !folded.includes(entry)), folded };
}

/** Sends these as one message; false if nothing may be sent after it. A message that can't be sent stays, to be tried again. */
async function deliverFolded(
  deps: DeliveryDeps,
  receiver: Receiver,
  entries: readonly QueuedEntry[],
  { isHeld, pace, signal }: Occasion,
): Promise<boolean> {
  if (signal.aborted || !(await isHeld())) return false;
  const texts = entries.map(({ body }) => (JSON.parse(body) as { text: string }).text);
  const id = `folded:${entries.length}:${messageId(entries[0] as QueuedEntry)}`;
  const { perHour = DEFAULT_PER_HOUR } = receiver;
  const text = [`${entries.length} messages in one, for ${perHour} are sent in an hour:`, ...texts].join('\n');
  const body = JSON.stringify(messageOf({ id, kind: 'folded', atMs: deps.clock.now(), text }));
  const outcome = await deps.sender.send(receiver, { id, body }, signal);
  if (!outcome.ok && signal.aborted) return false;
  for (const entry of entries) {
    if (outcome.ok) await deps.store.removeOutbox(entry.id);
    else await failed(deps, entry, outcome, pace);
  }
  if (!outcome.ok) return true;
  pace.sent(entries[0]?.subject ?? '');
  deps.telemetry.metrics.increment('ebb_notifications_total', { receiver: receiver.name, result: 'sent' });
  deps.telemetry.metrics.increment(
    'ebb_notifications_total',
    { receiver: receiver.name, result: 'folded' },
    entries.length,
  );
  return true;
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
  if (outcome.ok) await wasSent(deps, entry, pace);
  else if (signal.aborted) return false;
  else await failed(deps, entry, outcome, pace);
  return true;
}

async function wasSent({ store, telemetry }: DeliveryDeps, entry: QueuedEntry, pace: Pace): Promise<void> {
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

/** How many messages that can be folded a receiver gets in an hour, unless its settings say another number. */
const DEFAULT_PER_HOUR = 20;

/** Never those about one compute, about coming changes, and about a key: these are sent at once, however many there are. */
const FOLDABLE: ReadonlySet<string> = new Set<NotificationKind>([
  ...(['staged', 'freeze', 'budget_step', 'spend_anomaly', 'digest'] as const),
]);

/** The subject of a message about no compute begins with its kind. */
function canBeFolded(subject: string): boolean {
  return FOLDABLE.has(subject.split(' ', 1)[0] ?? '');
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
  /** How many more that can be folded may be sent in this hour; if none, they are paused until there is room. */
  room(perHour: number): number;
  /** Notes the given number of failures of a message about the subject. True if nothing else had failed before. */
  failed(subject: string, tries: number): boolean;
}

/** `sentMs`: when messages that can be folded were sent within the last hour, ascending; kept while nothing waits. */
function createPace({ monotonicMs }: Pick<Clock, 'monotonicMs'>, sentMs: number[]): Pace {
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
    sent(subject) {
      if (canBeFolded(subject)) sentMs.push(monotonicMs());
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
