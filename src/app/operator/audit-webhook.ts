/** The leader sends audit entries to a webhook, in order and at least once, each with its id. */

import { thenCleanUp } from '../../common/errors.ts';
import type { Receiver } from '../../domain/notifications/notification.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { AuditCopy, AuditLine } from '../../ports/audit-copy.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Sender } from '../../ports/outbox.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { pauseMs } from '../notifications/pace.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** The ids and instants of sent entries, in one document for each hour. */
const SENT = sharedDocuments<readonly (readonly [id: string, atMs: number])[]>('audit-webhook', 1);

/** The id of the note that says when sending began. */
const BEGUN = 'begun';

/** Sent entries are noted in batches of this size. If the daemon is killed, at most this many entries are sent again. */
const NOTE_AFTER = 20;

/** An entry may be stored up to a day late, so notes are kept for longer. */
const REMEMBERED_HOURS = 48;

type Sent = Pick<AuditLine, 'id' | 'atMs'>;

export interface AuditWebhookDeps {
  store: Pick<DocumentStore, 'documents' | 'document' | 'replaceDocument' | 'deleteDocuments'>;
  sender: Pick<Sender, 'send'>;
  clock: Pick<Clock, 'now' | 'monotonicMs'>;
  leaderLease: { isHeld(): boolean };
}

/** Creates the copy. Retries an entry that could not be sent, for as long as the store keeps it. */
export function createAuditWebhook(deps: AuditWebhookDeps, receiver: Receiver): AuditCopy {
  const { store, sender, clock, leaderLease } = deps;
  let failures = 0;
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  async function send({ id, document }: AuditLine, stopped: AbortSignal): Promise<boolean> {
    if (!leaderLease.isHeld() || stopped.aborted) return false;
    const outcome = await sender.send(receiver, { id, body: JSON.stringify(document) }, stopped);
    if (outcome.ok) failures = 0;
    if (outcome.ok || stopped.aborted) return outcome.ok;
    failures += 1;
    pausedUntilMs = clock.monotonicMs() + pauseMs(failures);
    throw new Error(`the audit webhook: ${outcome.message}`);
  }

  return {
    isReady: () => leaderLease.isHeld() && clock.monotonicMs() >= pausedUntilMs,
    async written() {
      const sent = [...(await SENT.all(store)).values()].flat();
      if (sent.length > 0) return new Map(sent);
      // The start is noted before anything is sent. So a webhook that fails at first still gets all entries since the start.
      const begun = { id: BEGUN, atMs: clock.now() };
      await note({ store, clock }, [begun]);
      return new Map([[begun.id, begun.atMs]]);
    },
    async append(lines, stopped) {
      const sent: AuditLine[] = [];
      const sendAll = async () => {
        for (const line of lines) {
          if (!(await send(line, stopped))) return false;
          sent.push(line);
          if (sent.length >= NOTE_AFTER) await note({ store, clock }, sent.splice(0));
        }
        return true;
      };
      return thenCleanUp(sendAll, () => note({ store, clock }, sent));
    },
  };
}

async function note(
  { store, clock }: Pick<AuditWebhookDeps, 'store' | 'clock'>,
  lines: readonly Sent[],
): Promise<void> {
  for (const hour of new Set(lines.map(hourOf))) {
    const added = lines.filter((line) => hourOf(line) === hour).map(({ id, atMs }) => [id, atMs] as const);
    let isNoted = false;
    let isNew = false;
    while (!isNoted) {
      const document = await SENT.open(store, String(hour));
      isNew = document.value === undefined;
      isNoted = await document.replace([...(document.value ?? []), ...added]);
    }
    if (isNew) await forgetOld(store, clock.now());
  }
}

/** Deletes notes that are much older than the newest. A note from the future, by a wrong clock, does not count as the newest. */
async function forgetOld(store: AuditWebhookDeps['store'], nowMs: number): Promise<void> {
  const hours = [...(await SENT.all(store)).keys()];
  const newest = Math.min(Math.max(...hours.map(Number)), Math.floor(nowMs / HOUR_MS));
  const oldest = newest - REMEMBERED_HOURS;
  const old = hours.filter((hour) => Number(hour) < oldest);
  await SENT.delete(store, old);
}

/** Returns the number of the hour since the epoch. */
function hourOf({ atMs }: Sent): number {
  return Math.floor(atMs / HOUR_MS);
}
