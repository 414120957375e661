import type { ComputeRecord } from '../domain/compute-record.ts';
import type { Lease } from '../ports/store.ts';
import { LEASE_MS } from './apply.ts';
import type { Context } from './context.ts';
import type { Picture } from './fleet.ts';

/** Reading under a lease must end well before the lease does, in real milliseconds. */
export const READ_DEADLINE_MS = 6_000;

/** A lease that is older, in real milliseconds, is not worth beginning with: a look takes a while too. */
const OLDEST_MS = LEASE_MS / 2;

/** A project that nobody else writes to, and what is stored of it: nobody else can change that either. */
export interface TakenProject {
  lease: Lease;
  records: ReadonlyMap<string, ComputeRecord>;
  /** When the lease was asked for, on the clock's monotonic time. */
  askedAtMonotonicMs: number;
}

/** One of which the control API has told what is. */
export interface SeenProject extends TakenProject {
  picture: Picture;
}

/** Undefined while somebody else has it. */
export async function takeProject(
  { store, clock, holder }: Context,
  projectId: string,
): Promise<TakenProject | undefined> {
  const askedAtMonotonicMs = clock.monotonicMs();
  const lease = await store.acquireLease(`project-${projectId}`, holder, LEASE_MS);
  if (!lease) return undefined;
  try {
    return { lease, records: await store.records(projectId), askedAtMonotonicMs };
  } catch (error) {
    await store.releaseLease(lease);
    throw error;
  }
}

/** Whether there is enough left of the lease to look at the project and to write. */
export function holdsLongEnough({ clock }: Context, { askedAtMonotonicMs }: TakenProject): boolean {
  return clock.monotonicMs() - askedAtMonotonicMs <= OLDEST_MS;
}

/**
 * What was read before a change was sent is not believed; nor is anything read so far if another daemon sent the last one,
 * since its clock is not ours.
 */
export function notBelievedBefore({ fleet, clock }: Context, { records }: TakenProject): number {
  const instants = [...records].map(([computeId, { lastSentAtMs = 0 }]) => {
    const own = fleet.conclusion(computeId)?.record.lastSentAtMs ?? 0;
    return own === lastSentAtMs ? lastSentAtMs : Math.max(lastSentAtMs, clock.now());
  });
  return Math.max(0, ...instants);
}
