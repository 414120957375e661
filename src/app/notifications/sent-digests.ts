/** The digests of coming changes that were queued, by receiver, owner and slot: what the daemons of a group have announced. */
import type { Store } from '../../ports/store.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** The computes that digests for a receiver have named, of one owner's slot. */
interface SentDigest {
  computeIds: readonly string[];
  /** The digest is deleted after this instant, milliseconds since the epoch. */
  untilMs: number;
}

export type SentDigests = ReadonlyMap<string, SentDigest>;

export const SENT_DIGESTS = sharedDocuments<SentDigest>('coming-changes', 1);

/** The name of a document. */
export function digestKey(receiver: string, owner: string, slotMs: number): string {
  return JSON.stringify([receiver, owner, slotMs]);
}

/** Returns true if a change of the compute was announced for a slot that began after `sinceMs`. Instants are milliseconds since the epoch. */
export async function wasAnnounced(
  store: Pick<Store, 'documents'>,
  { computeId, sinceMs, nowMs }: { computeId: string; sinceMs: number; nowMs: number },
): Promise<boolean> {
  const digests: SentDigests = await SENT_DIGESTS.all(store);
  return [...digests].some(([key, { computeIds }]) => {
    const slotMs = Number(JSON.parse(key)[2]);
    return slotMs > sinceMs && slotMs <= nowMs && computeIds.includes(computeId);
  });
}
