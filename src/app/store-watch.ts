import type { ComputeRecord } from '../domain/compute-record.ts';
import { LEASE_MS } from './apply.ts';
import type { DaemonContext } from './context.ts';
import { ensureTriggers } from './keeper.ts';

type Records = Map<string, ComputeRecord>;

/** Notices a store that came back empty, and gives back to it what this daemon knows. */
export interface StoreWatch {
  /** Throws if the store can't be asked. */
  check(context: DaemonContext): Promise<void>;
}

export function createStoreWatch(): StoreWatch {
  let storeId: string | undefined;
  const owed = new Map<string, Records>();
  let running: Promise<void> | undefined;

  async function check(context: DaemonContext): Promise<void> {
    const id = await context.store.storeId();
    if (storeId !== undefined && id !== storeId) {
      for (const [projectId, records] of recordsKnown(context)) owed.set(projectId, records);
      await restoreOverrides(context);
      await restoreGeneration(context);
      context.telemetry.log.warn(
        { event: 'ebb.store_empty', projects: owed.size },
        `the store came back empty: what is known of ${owed.size} projects is written back`,
      );
    }
    const isAnother = id !== storeId;
    storeId = id;
    for (const [projectId, records] of owed) {
      if (await giveBack(context, projectId, records)) owed.delete(projectId);
    }
    if (isAnother) await ensureTriggers(context);
  }

  return {
    check(context) {
      running ??= check(context).finally(() => {
        running = undefined;
      });
      return running;
    },
  };
}

/** As of now: what is looked at from here on is met as if for the first time. */
function recordsKnown({ fleet }: DaemonContext): Map<string, Records> {
  const known = new Map<string, Records>();
  for (const { compute, record } of fleet.conclusions()) {
    const records = known.get(compute.projectId) ?? new Map();
    known.set(compute.projectId, records.set(compute.computeId, record));
  }
  return known;
}

/** Before anything else: a freeze that is lost must not let a single write pass. */
async function restoreOverrides({ overrides, store, clock }: DaemonContext): Promise<void> {
  const nowMs = clock.now();
  for (const freeze of overrides.freezes) if (freeze.expiresAtMs > nowMs) await store.putFreeze(freeze);
  for (const hold of overrides.holds) if (hold.expiresAtMs > nowMs) await store.putHold(hold);
}

async function restoreGeneration({ sets, policies, store }: DaemonContext): Promise<void> {
  if (sets.generation === undefined) return;
  await store.restoreGeneration({ number: sets.generation, setHash: policies.set.hash });
}

/** False if somebody has the project's lease now. */
async function giveBack({ store, holder }: DaemonContext, projectId: string, known: Records): Promise<boolean> {
  const lease = await store.acquireLease(`project-${projectId}`, holder, LEASE_MS);
  if (!lease) return false;
  try {
    const stored = await store.records(projectId);
    for (const [computeId, record] of known) {
      const there = stored.get(computeId);
      if (there && there.firstSeenAtMs <= record.firstSeenAtMs) continue;
      await store.putRecord(projectId, computeId, there ? mergeRecords(record, there) : record, lease);
    }
    return true;
  } finally {
    await store.releaseLease(lease);
  }
}

/**
 * What was known before the store lost it, and what was found out since by someone who took the compute for a new one: the
 * baseline is that of the first sight.
 */
function mergeRecords(before: ComputeRecord, since: ComputeRecord): ComputeRecord {
  const { baseline, firstSeenAtMs, enforcedSinceMs = since.enforcedSinceMs } = before;
  const ids = new Set(since.openOperations.map(({ operationId }) => operationId));
  const stillOpen = before.openOperations.filter(({ operationId }) => !ids.has(operationId));
  return {
    ...before,
    ...since,
    baseline,
    firstSeenAtMs,
    ...(enforcedSinceMs !== undefined && { enforcedSinceMs }),
    lastApplied: { ...before.lastApplied, ...since.lastApplied },
    openOperations: [...stillOpen, ...since.openOperations],
  };
}
