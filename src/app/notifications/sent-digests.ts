/** The digests of coming changes that the daemons of a group have queued, by receiver, owner and slot. */
import { createHash } from 'node:crypto';
import type { ComingChange } from '../../domain/notifications/coming-change.ts';
import { changeKind } from '../../domain/plan/plan.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { Store } from '../../ports/store.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** A digest is kept for this long after its changes are due, in milliseconds: retries, limits and outages delay changes. */
export const KEPT_MS = 6 * HOUR_MS;

/** A restart up to this long before the announced instant, in milliseconds, is the announced one. */
export const EARLY_MS = MINUTE_MS;

/** The computes that digests for a receiver have named, of one owner's slot. */
export interface SentDigest {
  computeIds: readonly string[];
  /** Those of them that were said to restart. Absent in documents of earlier versions, as is `toMs`. */
  restartIds?: readonly string[];
  /** Those of them that were to get another timeout only: that restarts no compute, not even an awake one. */
  timeoutIds?: readonly string[];
  /** Those of them that were to be raised, and those that were to be lowered. A compute in neither may be either: of an earlier version. */
  raiseIds?: readonly string[];
  lowerIds?: readonly string[];
  /** Set once a digest has told the restarts of computes that earlier digests had listed as asleep, and that have woken since. */
  isWokenTold?: true;
  /** Set if the slot is the instant of an approval: these restarts are due by the approved policy set, and by nothing else. */
  isOfApproval?: true;
  /** The last instant of the changes, milliseconds since the epoch. */
  toMs?: number;
  /** The instants of the changes that come later than their slot begins, such as ends of waits, by compute; milliseconds since the epoch. */
  instants?: Readonly<Record<string, number>>;
  /** The digest is deleted after this instant, milliseconds since the epoch. */
  untilMs: number;
}

export type SentDigests = ReadonlyMap<string, SentDigest>;

/** The digests that this daemon knows. A store that has lost its data gets them back from it. */
export interface KnownDigests {
  current: SentDigests;
}

export const SENT_DIGESTS = sharedDocuments<SentDigest>('coming-changes', 1);

/** The name of a document. */
export function digestKey(receiver: string, owner: string, slotMs: number): string {
  return JSON.stringify([receiver, owner, slotMs]);
}

/** The inverse of {@link digestKey}. */
export function partsOfKey(key: string): { receiver: string; owner: string; slotMs: number } {
  const [receiver, owner, slotMs]: [string, string, number] = JSON.parse(key);
  return { receiver, owner, slotMs };
}

/** The id of a digest's message. It depends on the computes, and on the instants of changes that are told again (`isAgain`) in the slot. */
export function digestId<Change extends ComingChange>(
  { owner, slotMs }: { owner: string; slotMs: number },
  news: readonly Change[],
  isAgain: (change: Change) => boolean = () => false,
): string {
  const idOf = (change: Change) =>
    isAgain(change) ? `${change.compute.computeId}@${change.instantMs}` : change.compute.computeId;
  const ids = [...new Set(news.map(idOf))].sort();
  return `${owner}:${slotMs}:${createHash('sha256').update(ids.join()).digest('hex').slice(0, 16)}`;
}

/** Returns the digest with these changes added, which are due from `fromMs` on. */
export function digestAfter(
  before: Partial<SentDigest> = {},
  news: readonly ComingChange[],
  fromMs: number,
): SentDigest {
  const newIds = new Set(idsOf(news));
  const restarts = new Set(idsOf(news.filter(({ action }) => action.disconnects)));
  const idsOfKind = (kind: ReturnType<typeof changeKind>) =>
    idsOf(news.filter(({ action }) => changeKind([action]) === kind));
  const union = (told: readonly string[] = [], added: Iterable<string>) => [...new Set([...told, ...added])];
  const timeouts = (before.timeoutIds ?? []).filter((id) => !newIds.has(id));
  return {
    computeIds: union(before.computeIds, newIds),
    timeoutIds: union(
      timeouts,
      idsOfKind('timeout').filter((id) => !restarts.has(id)),
    ),
    restartIds: union(before.restartIds, restarts),
    raiseIds: union(before.raiseIds, idsOfKind('raise')),
    lowerIds: union(before.lowerIds, idsOfKind('lower')),
    instants: { ...before.instants, ...laterInstants(news) },
    toMs: Math.max(before.toMs ?? 0, ...news.map(({ instantMs }) => instantMs)),
    untilMs: fromMs + KEPT_MS,
  };
}

function idsOf(changes: readonly ComingChange[]): string[] {
  return changes.map(({ compute }) => compute.computeId);
}

/** The instants of the changes that come later than their slot begins, by compute. Of several changes the last counts, which disconnects. */
function laterInstants(changes: readonly ComingChange[]): Record<string, number> {
  const later = changes.filter(({ instantMs, slotMs }) => instantMs > slotMs);
  return Object.fromEntries(later.map(({ compute: { computeId }, instantMs }) => [computeId, instantMs]));
}

/** What was announced with the restart of a compute. Instants are milliseconds since the epoch. */
export interface Announced {
  owner: string;
  /** The owner's computes that were to restart. The other computes of the digest may restart, if they are awake by then. */
  ownIds: readonly string[];
  slotMs: number;
  /** The computes of all owners that were to restart in the slot; a compute occurs once for each receiver that was told of it. */
  restartIds: readonly string[];
  /** The receivers whose digests have counted this compute among those that restart. */
  countedFor: readonly string[];
  /** The last instant of the changes; absent in documents of earlier versions. */
  atMs?: number;
  /** The instants of those that come later than the slot begins, by compute; see {@link announcedInstant}. */
  instants?: SentDigest['instants'];
}

/** The instant for which a compute's change was announced; the slots of waits begin up to a quarter of an hour before they end. */
export function announcedInstant(
  { slotMs, instants }: Pick<Announced, 'slotMs' | 'instants'>,
  computeId: string,
): number {
  return instants?.[computeId] ?? slotMs;
}

interface Query {
  computeId: string;
  /** True for a raise, false for a lowering; absent for what is neither. */
  raises?: boolean | undefined;
  sinceMs: number;
  nowMs: number;
  /** Slots that begin up to this long from now count, too, in milliseconds. */
  aheadMs?: number;
  /** Approvals of the policy set that makes the restart due, and the compute's last change; absent if no approved set makes it due. */
  approval?: { atMs: readonly number[]; sinceMs: number };
}

/** How long a reading of the digests is used for further restarts, in milliseconds: a boundary has hundreds, and digests have megabytes. */
const FRESH_MS = 5_000;

const lastRead = new WeakMap<Pick<Store, 'documents'>, { atMs: number; reading: Promise<SentDigests> }>();

/**
 * Returns the last announcement of a compute's restart for an instant after `sinceMs`, of a slot that has begun or is at most `aheadMs` away.
 * An announced raise does not count for a lowering, nor the reverse. Instants are milliseconds since the epoch.
 */
export async function announcementOf(store: Pick<Store, 'documents'>, query: Query): Promise<Announced | undefined> {
  const { nowMs } = query;
  const last = lastRead.get(store);
  const isFresh = last !== undefined && nowMs >= last.atMs && nowMs - last.atMs < FRESH_MS;
  // An announcement that is not among these digests may have been queued since.
  const announced = isFresh ? announcementIn(await last.reading, query) : undefined;
  if (announced) return announced;
  const reading = SENT_DIGESTS.all(store);
  lastRead.set(store, { atMs: nowMs, reading });
  try {
    return announcementIn(await reading, query);
  } catch (error) {
    lastRead.delete(store);
    throw error;
  }
}

/** True if a digest has said of a compute that it restarts, or that it may if it is awake by then. */
function mayRestart({ computeIds, restartIds = [], timeoutIds = [] }: SentDigest, computeId: string): boolean {
  return restartIds.includes(computeId) || (computeIds.includes(computeId) && !timeoutIds.includes(computeId));
}

/** False if a digest has said that a compute is lowered, and it is raised, or the reverse. */
export function isSameDirection(
  { raiseIds = [], lowerIds = [] }: SentDigest,
  { computeId, raises }: Pick<Query, 'computeId' | 'raises'>,
): boolean {
  const [same, opposite] = raises ? [raiseIds, lowerIds] : [lowerIds, raiseIds];
  return raises === undefined || same.includes(computeId) || !opposite.includes(computeId);
}

function announcementIn(digests: SentDigests, query: Query): Announced | undefined {
  const { computeId, sinceMs, nowMs, aheadMs = 0, approval } = query;
  const near = [...digests].flatMap(([key, { restartIds = [], ...digest }]) => {
    const { receiver, owner, slotMs } = partsOfKey(key);
    const isValid = slotMs <= nowMs + aheadMs && digest.untilMs >= nowMs;
    const isOfOtherCause = digest.isOfApproval && !approval?.atMs.includes(slotMs);
    return isValid && !isOfOtherCause ? [{ receiver, owner, slotMs, restartIds, ...digest }] : [];
  });
  // The compute may have been changed between the beginning of the slot and its announced instant.
  const instantOf = (digest: (typeof near)[number]) => announcedInstant(digest, computeId);
  const sinceOf = ({ isOfApproval }: SentDigest) => (isOfApproval && approval ? approval.sinceMs : sinceMs);
  const found = near.filter(
    (digest) => mayRestart(digest, computeId) && isSameDirection(digest, query) && instantOf(digest) > sinceOf(digest),
  );
  // A receiver that a policy names was told only of that policy's restarts: the digest with the most is the one for the owner.
  const last = found
    .toSorted((a, b) => instantOf(a) - instantOf(b) || a.restartIds.length - b.restartIds.length)
    .at(-1);
  if (!last) return undefined;
  const { owner, slotMs, restartIds, toMs, instants } = last;
  return {
    owner,
    slotMs,
    ownIds: restartIds,
    ...(toMs !== undefined && { atMs: toMs }),
    ...(instants && { instants }),
    restartIds: near.filter((one) => one.slotMs === slotMs).flatMap((one) => one.restartIds),
    countedFor: found
      .filter((one) => one.slotMs === slotMs && one.restartIds.includes(computeId))
      .map(({ receiver }) => receiver),
  };
}
