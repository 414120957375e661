/**
 * Delivers the outbox to its receivers: at least once, in order for each subject. Each receiver has a lease and a pace of its own, so that
 * a slow one delays no other, and a refused message delays only those about its subject. No change of a compute waits for it.
 */

import pLimit from 'p-limit';
import { thenCleanUp } from '../../common/errors.ts';
import {
  MAX_FOLDED_LENGTH,
  type MessageDocument,
  messageOf,
  type Receiver,
} from '../../domain/notifications/notification.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { QueuedEntry, Sender, SendOutcome } from '../../ports/outbox.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type RunInBackground, type Running, StoppedError } from '../background.ts';
import type { CurrentRules } from '../rules.ts';
import { sharedDocuments } from '../shared-documents.ts';
import { messageId } from './notify.ts';
import { canBeFolded, createPace, DEFAULT_PER_HOUR, type Pace } from './pace.ts';

/** Interval between checks of the outbox, in real milliseconds. */
const CHECK_EVERY_MS = 1_000;

/** The duration of the lease of a receiver, longer than any request; in real milliseconds. */
const LEASE_MS = 30_000;
/** A lease of this age is renewed before a message is sent; in real milliseconds. */
const RENEW_AFTER_MS = 10_000;

const MESSAGES_PER_READ = 100;
const CONCURRENT_SUBJECTS = 4;

/** A message that could not be sent for this long, in milliseconds, is dead: a person may try it again. */
const GIVE_UP_AFTER_MS = DAY_MS;

/** A message with this error is tried again: another daemon of the group may have newer settings, which define its receiver. */
const UNKNOWN_RECEIVER = 'ebb.yaml of this daemon does not define this receiver';

/** When foldable messages were sent within the last hour, by receiver: the limit holds for all daemons, and after their restarts. */
const SENT_AT = sharedDocuments<readonly number[]>('notifications-sent', 1);

const GAUGES = ['ebb_notifications_waiting', 'ebb_notifications_dead', 'ebb_notifications_oldest_seconds'] as const;

type DeliveryStore = Pick<
  Store,
  | 'acquireLease'
  | 'renewLease'
  | 'releaseLease'
  | 'outbox'
  | 'outboxCounts'
  | 'updateOutbox'
  | 'finishOutbox'
  | 'document'
  | 'putDocument'
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

/** Checks the outbox until `close` is called. A message that is being sent then is abandoned; the next daemon sends it again. */
export function startDelivery(deps: DeliveryDeps): Running {
  const { clock } = deps;
  const stopped = new AbortController();
  const paces = new Map<string, Pace>();
  const busy = new Map<string, Promise<void>>();

  function paceOf(receiver: string): Pace {
    const pace = paces.get(receiver) ?? createPace(clock);
    paces.set(receiver, pace);
    return pace;
  }

  async function check(): Promise<void> {
    const { receivers, lost } = await deps.store.outboxCounts();
    exportOutbox(deps, { receivers, lost, paces });
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
      stopped.abort(new StoppedError());
      await round.close();
      await Promise.all(busy.values());
    },
  };
}

/** Sends the messages of one receiver, until only failed ones are left. Does nothing while another daemon has the lease. */
async function deliver(deps: DeliveryDeps, name: string, pace: Pace, signal: AbortSignal): Promise<void> {
  const lease = await deps.store.acquireLease(`notify-${name}`, deps.holder, LEASE_MS);
  if (!lease) return;
  const turn = { isHeld: createLeaseCheck(deps, lease), pace, signal };
  const send = async (receiver: Receiver | undefined, due: readonly QueuedEntry[], folded: readonly QueuedEntry[]) =>
    (await deliverBatch(deps, receiver, due, turn)) && (!receiver || deliverFolded(deps, receiver, folded, turn));
  const deliverAll = async () => {
    pace.setSent((await SENT_AT.read(deps.store, name)) ?? []);
    let limit = MESSAGES_PER_READ;
    while (!pace.isPaused()) {
      const entries = await deps.store.outbox({ receiver: name, state: 'waiting', limit });
      const receiver = deps.rules.current.notify.receivers.find((one) => one.name === name);
      const ready = entries.filter(({ subject }) => !pace.isPaused(subject));
      if (ready.length === 0 && entries.length < limit) return pace.noteAllPaused(entries);
      const { due, folded } = withinLimit(ready, receiver, pace);
      const mayBeMore = entries.length === limit && (ready.length === 0 || folded.length > 0);
      // There may be more messages behind the paused ones, or more to fold.
      if (mayBeMore) limit *= 10;
      else if (!(await send(receiver, due, folded))) return;
    }
  };
  return thenCleanUp(deliverAll, () => deps.store.releaseLease(lease));
}

/** Creates a check that the lease is still held, which renews an old one. */
function createLeaseCheck({ store, clock }: DeliveryDeps, lease: Lease): () => Promise<boolean> {
  let renewedMs = clock.monotonicMs();
  return async () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - renewedMs < RENEW_AFTER_MS) return true;
    if (!(await store.renewLease(lease, LEASE_MS))) return false;
    renewedMs = nowMs;
    return true;
  };
}

/** One daemon's turn at the messages of a receiver. */
interface Turn {
  isHeld(): Promise<boolean>;
  pace: Pace;
  signal: AbortSignal;
}

/** Sends messages in order for each subject, several subjects at a time, failed ones last. Returns false if the turn must end. */
async function deliverBatch(
  deps: DeliveryDeps,
  receiver: Receiver | undefined,
  entries: readonly QueuedEntry[],
  turn: Turn,
): Promise<boolean> {
  const subjects = new Set(entries.toSorted((a, b) => a.tries - b.tries).map(({ subject }) => subject));
  let mayContinue = true;
  await pLimit(CONCURRENT_SUBJECTS).map(subjects, async (subject) => {
    for (const entry of entries.filter((one) => one.subject === subject)) {
      if (!mayContinue || turn.pace.isPaused(subject)) return;
      mayContinue = (await deliverOne(deps, receiver, entry, turn)) && mayContinue;
    }
  });
  return mayContinue;
}

/**
 * Separates the messages that are sent singly from those that the receiver's limit folds into one. Once the limit is reached, `pace` holds
 * all foldable ones until the hour has room again.
 */
function withinLimit(
  entries: readonly QueuedEntry[],
  receiver: Receiver | undefined,
  pace: Pace,
): { due: readonly QueuedEntry[]; folded: readonly QueuedEntry[] } {
  const foldable = entries.filter(({ subject }) => canBeFolded(subject));
  const room = receiver ? pace.room(receiver.perHour ?? DEFAULT_PER_HOUR) : foldable.length;
  if (foldable.length <= room) return { due: entries, folded: [] };
  if (room === 0) return { due: entries.filter(({ subject }) => !canBeFolded(subject)), folded: [] };
  const folded = foldable.slice(room - 1);
  return { due: entries.filter((entry) => !folded.includes(entry)), folded };
}

/** Sends these messages folded into as few as they fit into. Returns false if the turn must end. What can't be sent is tried again. */
async function deliverFolded(
  deps: DeliveryDeps,
  receiver: Receiver,
  waiting: readonly QueuedEntry[],
  turn: Turn,
): Promise<boolean> {
  const { isHeld, pace, signal } = turn;
  const { perHour = DEFAULT_PER_HOUR, name } = receiver;
  let left = waiting;
  while (left[0]) {
    const [first] = left;
    const texts = fittingTexts(left.map(textWithCommand));
    const entries = left.slice(0, texts.length);
    left = left.slice(texts.length);
    if (signal.aborted || !(await isHeld())) return false;
    if (entries.length === 1) return deliverOne(deps, receiver, first, turn);
    const id = `folded:${entries.length}:${messageId(first)}`;
    const title = `${entries.length} messages in one, since at most ${perHour} are sent in an hour:`;
    const text = [title, ...texts].join('\n');
    const folded = messageOf({ id, kind: 'folded', atMs: deps.clock.now(), text }, deps.rules.current.notify.statusUrl);
    const outcome = await deps.sender.send(receiver, { id, body: JSON.stringify(folded) }, signal);
    if (!outcome.ok) {
      if (!signal.aborted) await recordFailed(deps, entries, outcome, pace);
      return !signal.aborted;
    }
    await recordSent(deps, entries, pace);
    deps.telemetry.metrics.increment('ebb_notifications_total', { receiver: name, result: 'folded' }, entries.length);
  }
  return true;
}

/** Room for the first line of a folded message, in characters. */
const FOLDED_FRAME_LENGTH = 120;

/** Returns the first texts, as many as a folded message has room for, but at least one. */
function fittingTexts(texts: readonly string[]): readonly string[] {
  let room = MAX_FOLDED_LENGTH - FOLDED_FRAME_LENGTH;
  const over = texts.findIndex((text, index) => {
    room -= text.length + 1;
    return index > 0 && room < 0;
  });
  return over === -1 ? texts : texts.slice(0, over);
}

function textWithCommand({ body }: QueuedEntry): string {
  const { text, command } = JSON.parse(body) as Pick<MessageDocument, 'text' | 'command'>;
  return command === null ? text : `${text} (${command})`;
}

/** Sends one message. Returns false if the turn must end. */
async function deliverOne(
  deps: DeliveryDeps,
  receiver: Receiver | undefined,
  entry: QueuedEntry,
  { isHeld, pace, signal }: Turn,
): Promise<boolean> {
  if (signal.aborted || !(await isHeld())) return false;
  const outcome: SendOutcome = receiver
    ? await deps.sender.send(receiver, { id: messageId(entry), body: entry.body }, signal)
    : { ok: false, isRefused: false, message: UNKNOWN_RECEIVER };
  if (outcome.ok) await recordSent(deps, [entry], pace);
  else if (signal.aborted) return false;
  else await recordFailed(deps, [entry], outcome, pace);
  return true;
}

async function recordSent(
  { store, telemetry }: DeliveryDeps,
  entries: readonly QueuedEntry[],
  pace: Pace,
): Promise<void> {
  for (const { id } of entries) await store.finishOutbox(id);
  const receiver = entries[0]?.receiver ?? '';
  const sentAtMs = pace.sent(entries.map(({ subject }) => subject));
  if (sentAtMs) await SENT_AT.put(store, receiver, sentAtMs);
  telemetry.metrics.increment('ebb_notifications_total', { receiver, result: 'sent' });
}

async function recordFailed(
  { store, clock, telemetry: { log, metrics } }: DeliveryDeps,
  entries: readonly QueuedEntry[],
  { isRefused, message }: { isRefused: boolean; message: string },
  pace: Pace,
): Promise<void> {
  const isDead = ({ atMs }: QueuedEntry) => isRefused || clock.now() - atMs >= GIVE_UP_AFTER_MS;
  for (const entry of entries) {
    const { id, receiver, tries } = entry;
    await store.updateOutbox(id, { state: isDead(entry) ? 'dead' : 'waiting', tries: tries + 1, error: message });
    metrics.increment('ebb_notifications_total', { receiver, result: isDead(entry) ? 'dead' : 'failed' });
    if (!isDead(entry)) continue;
    log.error(
      { event: 'ebb.notification_dead', receiver, id },
      `a notification could not be sent to ${receiver} (${message}) and is not tried again: ebb notify list`,
    );
  }
  // A refusal is about the message; the receiver works.
  const isNews = !isRefused && pace.failed(entries);
  const waiting = entries.find((entry) => !isDead(entry));
  if (!isNews || !waiting) return;
  const { id, receiver } = waiting;
  log.warn(
    { event: 'ebb.notification_failed', receiver, id },
    `${receiver} does not take notifications (${message}); they wait and are tried again`,
  );
}

function exportOutbox(
  { telemetry: { metrics }, clock }: DeliveryDeps,
  { receivers, lost, paces }: Awaited<ReturnType<DeliveryStore['outboxCounts']>> & { paces: ReadonlyMap<string, Pace> },
): void {
  for (const name of GAUGES) metrics.clear(name);
  for (const { receiver, waiting, dead, oldestAtMs } of receivers) {
    metrics.set('ebb_notifications_waiting', { receiver }, waiting);
    metrics.set('ebb_notifications_dead', { receiver }, dead);
    const pace = paces.get(receiver);
    const dueMs = pace ? pace.oldestDueMs(oldestAtMs) : oldestAtMs;
    const ageMs = dueMs === undefined ? 0 : Math.max(0, clock.now() - dueMs);
    metrics.set('ebb_notifications_oldest_seconds', { receiver }, ageMs / 1000);
  }
  metrics.set('ebb_notifications_lost', {}, lost);
}
