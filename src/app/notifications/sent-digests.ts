/** The digests of coming changes that were queued, by receiver, owner and slot: what the daemons of a group have announced. */
import type { Store } from '../../ports/store.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** The computes that digests for a receiver have named, of one owner's slot. */
interface SentDigest {
  computeIds: readonly string[];
  /** Those of them that were said to restart. Absent in documents of earlier versions, as is `toMs`. */
  restartIds?: readonly string[];
  /** The last instant of the changes, milliseconds since the epoch. */
  toMs?: number;
  /** The digest is deleted after this instant, milliseconds since the epoch. */
  untilMs: number;
}

export type SentDigests = ReadonlyMap<string, SentDigest>;

export const SENT_DIGESTS = sharedDocuments<SentDigest>('coming-changes', 1);

/** The name of a document. */
export function digestKey(receiver: string, owner: string, slotMs: number): string {
  return JSON.stringify([receiver, owner, slotMs]);
}

/** What was announced with the restart of a compute. */
interface Announced {
  owner: string;
  restarts: number;
  /** The last instant of the changes, milliseconds since the epoch; absent if the compute was announced without a restart. */
  atMs?: number;
}

/** Returns the last announcement of a compute for a slot that began after `sinceMs`. Instants are milliseconds since the epoch. */
export async function announcementOf(
  store: Pick<Store, 'documents'>,
  { computeId, sinceMs, nowMs }: { computeId: string; sinceMs: number; nowMs: number },
): Promise<Announced | undefined> {
  const digests: SentDigests = await SENT_DIGESTS.all(store);
  const found = [...digests].flatMap(([key, digest]) => {
    const [, owner, slotMs]: [string, string, number] = JSON.parse(key);
    const isOf = slotMs > sinceMs && slotMs <= nowMs && digest.computeIds.includes(computeId);
    return isOf ? [{ owner, slotMs, ...digest }] : [];
  });
  const last = found.toSorted((a, b) => a.slotMs - b.slotMs).at(-1);
  if (!last) return undefined;
  const { owner, restartIds = [], toMs } = last;
  const isRestart = toMs !== undefined && restartIds.includes(computeId);
  return { owner, restarts: restartIds.length, ...(isRestart && { atMs: toMs }) };
}
