/**
 * Takes what waits in the outbox to its receivers: at least once, in order for each subject. Each receiver has a lease and a pace of
 * its own, so that one that is slow or down delays no other. Nothing that changes computes waits for any of this.
 */

import pLimit from 'p-limit';
import type { Receiver } from '../../domain/notifications/receivers.ts';
import type { Clock } from '../../ports/clock.ts';
import type { QueuedEntry } from '../../ports/outbox.ts';
import type { Sender, SendOutcome } from '../../ports/sender.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import type { CurrentRules } from '../rules.ts';
import { messageId } from './outbox-entries.ts';

/** How often the outbox is checked, in real milliseconds. */
const CHECK_EVERY_MS = 1_000;

/** The lease of a receiver outlives the longest exchange; it is renewed before a message is sent, once it is so old. Real milliseconds. */
const LEASE_MS = 30_000;
const RENEW_AFTER_MS = 10_000;

/** Messages that are read at once, and how many of different subjects are sent at a time. */
const BATCH = 100;
const AT_A_TIME = 4;

/** After a failure a receiver is left alone for so long, doubled with each that follows, in milliseconds. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** What could not be sent for so long is dead: a person may try it again. Milliseconds. */
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

/** How it went with a receiver of late. */
interface Pace {
  failures: number;
  /** Left alone until then, by the monotonic clock. */
  untilMs: number;
}

/** Checks the outbox until it is closed. What is being sent then is given up, and sent again by the next daemon. */
export function startDelivery(deps: DeliveryDeps): Running {
  const { clock } = deps;
  const stopped = new AbortController();
  const paces = new Map<string, Pace>();
  const busy = new Map<string, Promise<void>>();

  async function check(): Promise<void> {
    const { receivers, lost } = await deps.store.outboxCounts();
    showOutbox(deps, receivers, lost);
    for (const { receiver, waiting } of receivers) {
      if (waiting === 0 || busy.has(receiver)) continue;
      const pace = paces.get(receiver) ?? { failures: 0, untilMs: Number.NEGATIVE_INFINITY };
      paces.set(receiver, pace);
      if (clock.monotonicMs() < pace.untilMs) continue;
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

/** Sends what waits for one receiver, until there is nothing left or it fails. Another daemon may be at it: then nothing is done. */
async function deliver(deps: DeliveryDeps, name: string, pace: Pace, signal: AbortSignal): Promise<void> {
  const lease = await deps.store.acquireLease(`notify-${name}`, deps.holder, LEASE_MS);
  if (!lease) return;
  const isHeld = heldCheck(deps, lease);
  try {
    for (;;) {
      const entries = await deps.store.outbox({ receiver: name, state: 'waiting', limit: BATCH });
      if (entries.length === 0) return;
      const receiver = deps.rules.current.notify.receivers.find((one) => one.name === name);
      if (!(await deliverBatch(deps, receiver, entries, { isHeld, pace, signal }))) return;
    }
  } finally {
    await deps.store.releaseLease(lease);
  }
}

/** Tells whether the lease is still held, and renews it when it is no longer young. */
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

/** In order for each subject, several subjects at a time; false if the receiver is to be left alone for now. */
async function deliverBatch(
  deps: DeliveryDeps,
  receiver: Receiver | undefined,
  entries: readonly QueuedEntry[],
  occasion: Occasion,
): Promise<boolean> {
  const subjects = new Set(entries.map(({ subject }) => subject));
  let goesOn = true;
  await pLimit(AT_A_TIME).map(subjects, async (subject) => {
    for (const entry of entries.filter((one) => one.subject === subject)) {
      goesOn = goesOn && (await deliverOne(deps, receiver, entry, occasion));
      if (!goesOn) return;
    }
  });
  return goesOn;
}

/** True if others may be sent after it. */
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
  if (!outcome.ok) return signal.aborted ? false : failed(deps, entry, outcome, pace);
  await sent(deps, entry, pace);
  return true;
}

async function sent({ store, telemetry }: DeliveryDeps, { id, receiver }: QueuedEntry, pace: Pace): Promise<void> {
  await store.removeOutbox(id);
  pace.failures = 0;
  telemetry.metrics.increment('ebb_notifications_total', { receiver, result: 'sent' });
}

/** True if the messages after it may be sent: it was refused for itself, and is dead. */
async function failed(
  { store, clock, telemetry: { log, metrics } }: DeliveryDeps,
  { id, receiver, atMs, tries }: QueuedEntry,
  { isRefused, message }: { isRefused: boolean; message: string },
  pace: Pace,
): Promise<boolean> {
  const isDead = isRefused || clock.now() - atMs >= GIVE_UP_AFTER_MS;
  const state = isDead ? 'dead' : 'waiting';
  await store.deferOutbox(id, { state, tries: tries + 1, error: message });
  metrics.increment('ebb_notifications_total', { receiver, result: isDead ? 'dead' : 'failed' });
  if (isDead) {
    log.error(
      { event: 'ebb.notification_dead', receiver, id },
      `a notification could not be sent to ${receiver} (${message}) and is not tried again: ebb notify list`,
    );
    return isRefused;
  }
  // Of several that were on their way at once the first has said it.
  if (clock.monotonicMs() < pace.untilMs) return false;
  pace.failures += 1;
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (pace.failures - 1));
  pace.untilMs = clock.monotonicMs() + pauseMs;
  if (pace.failures === 1) {
    const fields = { event: 'ebb.notification_failed', receiver, id };
    log.warn(fields, `${receiver} does not take notifications (${message}); they wait and are tried again`);
  }
  return false;
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
