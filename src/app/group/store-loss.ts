import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { TrialStop } from '../../domain/trial/savings.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Generation } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { oneAtATime } from '../background.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type LeaseDeps, withProjectLease } from '../leases/locked-project.ts';
import { type KnownDigests, SENT_DIGESTS } from '../notifications/sent-digests.ts';
import type { Overrides } from '../overrides.ts';
import type { CurrentRules } from '../rules.ts';
import type { StoreLosses } from '../shared-documents.ts';
import { updateReadyWaves, withNewWaves } from '../stored-waves.ts';
import { mergeReleases, mergeStates, updateBudgets, updateReleases } from '../usage/budget-store.ts';
import { updateTrialStops } from '../usage/trial-stops.ts';

/** Notices a store that came back empty, and writes back what this daemon remembers. */
export interface StoreWatch extends StoreLosses {
  /** Throws if the store can't be asked. */
  check(): Promise<void>;
  /** Returns for how long nothing may be decided yet, in milliseconds: other daemons may still be writing back what they know. */
  waitMs(): number;
  /** Returns when this daemon last found that the store had lost its data, milliseconds since the epoch; undefined if never. */
  lostAtMs(): number | undefined;
}

/** How long daemons need to notice the loss (they check every 2 s) and to write back what they know, in milliseconds. */
const WRITE_BACK_MS = 15_000;

export interface StoreWatchDeps extends LeaseDeps {
  clock: Clock;
  telemetry: Telemetry;
  fleet: Fleet;
  overrides: Overrides;
  knownDigests: KnownDigests;
  rules: CurrentRules;
  /** The highest generation that this daemon has seen; undefined if it has seen none. */
  newestGeneration(): Generation | undefined;
  /** Restores the queue's jobs: a store that lost its records has lost its jobs too. */
  ensureTriggers(): Promise<void>;
}

export function createStoreWatch(deps: StoreWatchDeps): StoreWatch {
  const { store, clock, telemetry, overrides } = deps;
  let storeId: string | undefined;
  let lostAtMonotonicMs = Number.NEGATIVE_INFINITY;
  let lostAtMs: number | undefined;
  const writeBacks: (() => Promise<void>)[] = [];
  /** The evaluations from before the loss, by project id. In the fleet, evaluations by the empty store soon replace them. */
  const toRestore = new Map<string, EvaluatedCompute[]>();
  /** The records of changes that were being sent during a loss, once they are in the store again. */
  const writtenBack = new WeakSet<ComputeRecord>();

  async function check(): Promise<void> {
    const id = await store.storeId();
    const isAnother = id !== storeId;
    if (isAnother && storeId !== undefined) {
      lostAtMonotonicMs = clock.monotonicMs();
      lostAtMs = clock.now();
      const evaluated = groupBy(deps.fleet.evaluatedComputes(), ({ compute }) => compute.projectId);
      // Evaluations in `toRestore` take precedence: after a failed check, evaluations in the fleet may already be by the empty store.
      for (const [projectId, computes] of [...evaluated, ...toRestore]) toRestore.set(projectId, computes);
      await overrides.refresh(store, clock.now());
      await restoreDocuments(deps, writeBacks);
      telemetry.metrics.increment('ebb_store_lost_total', {});
      telemetry.log.warn(
        { event: 'ebb.store_empty', projects: toRestore.size },
        `the store came back empty: the known records of ${toRestore.size} projects are written back`,
      );
    }
    storeId = id;
    for (const [projectId, computes] of toRestore) {
      if (await restoreRecords(deps, projectId, computes)) toRestore.delete(projectId);
    }
    if (waitMs() > 0) await restoreSent();
    if (isAnother) await deps.ensureTriggers();
  }

  /**
   * Writes back the changes that were being sent when the store was lost. Their results were known only after the evaluations were kept.
   * Without this, another daemon would take the new values for changes made by people.
   */
  async function restoreSent(): Promise<void> {
    // This reaches back far enough, since a call is shorter than `WRITE_BACK_MS`.
    const fromMs = (lostAtMs ?? 0) - WRITE_BACK_MS;
    const isDue = ({ compute, record }: EvaluatedCompute) =>
      (record.lastSentAtMs ?? 0) >= fromMs && !toRestore.has(compute.projectId) && !writtenBack.has(record);
    const due = [...deps.fleet.evaluatedComputes()].filter(isDue);
    for (const [projectId, computes] of groupBy(due, ({ compute }) => compute.projectId))
      if (await restoreRecords(deps, projectId, computes)) for (const { record } of computes) writtenBack.add(record);
  }

  const waitMs = () => Math.max(0, lostAtMonotonicMs + WRITE_BACK_MS - clock.monotonicMs());

  return {
    check: oneAtATime(check).run,
    waitMs,
    lostAtMs: () => lostAtMs,
    onLoss: (writeBack) => void writeBacks.push(writeBack),
  };
}

async function restoreDocuments(deps: StoreWatchDeps, writeBacks: readonly (() => Promise<void>)[]): Promise<void> {
  await restoreGeneration(deps);
  await restoreDigests(deps);
  await restoreDecisions(deps);
  for (const writeBack of writeBacks) await writeBack();
}

async function restoreGeneration({ newestGeneration, store }: StoreWatchDeps): Promise<void> {
  const newest = newestGeneration();
  if (newest !== undefined) await store.restoreGeneration(newest);
}

/** Writes back the digests of announcements: without them, announced restarts would be reported as unannounced. */
async function restoreDigests({ knownDigests, store, clock }: StoreWatchDeps): Promise<void> {
  const stored = await SENT_DIGESTS.all(store);
  for (const [key, digest] of knownDigests.current)
    if (!stored.has(key) && digest.untilMs >= clock.now()) await SENT_DIGESTS.fill(store, key, digest);
}

/**
 * Writes back the leader's decisions. Without its waves, a daemon that starts would make announced raises at once. Without the steps of
 * budgets, commands would plan raises that the steps forbid.
 */
async function restoreDecisions({ rules, store, clock }: StoreWatchDeps): Promise<void> {
  const { readyWaves, trialStops } = rules.current.policies;
  // Without budgets an empty list is stored: for a command whose policies add a budget, the steps must not seem to be unknown.
  const { states, releases = [] } = rules.budgets ?? { states: [] };
  if (readyWaves.length > 0)
    await expectStored(updateReadyWaves(store, (others = []) => withNewWaves(readyWaves, others, clock.now())));
  if (trialStops.length > 0)
    await expectStored(
      updateTrialStops(store, (others = []) => [...others, ...trialStops.filter((stop) => !isStored(stop, others))]),
    );
  if (states !== undefined) await expectStored(updateBudgets(store, (others = []) => mergeStates(others, states)));
  if (releases.length > 0) await expectStored(updateReleases(store, (others = []) => mergeReleases(others, releases)));
}

/** Throws if a document could not be updated, since other daemons kept writing it: the next check tries again. */
async function expectStored(updating: Promise<boolean>): Promise<void> {
  if (await updating) return;
  throw new Error('what the store lost could not be written back: others were writing at the same time');
}

function isStored({ policy, terms }: TrialStop, stored: readonly TrialStop[]): boolean {
  return stored.some((one) => one.policy === policy && one.terms === terms);
}

/** Stores the remembered records of a project again. Returns false if another process has the project's lease. */
async function restoreRecords(
  deps: LeaseDeps,
  projectId: string,
  remembered: readonly EvaluatedCompute[],
): Promise<boolean> {
  const { store } = deps;
  const isDone = await withProjectLease(deps, projectId, async (lease) => {
    const stored = await store.records(projectId);
    for (const { compute, record } of remembered) {
      const { computeId } = compute;
      const storedRecord = stored.get(computeId);
      const isFromBeforeLoss = storedRecord !== undefined && storedRecord.firstSeenAtMs <= record.firstSeenAtMs;
      // A record from before this daemon's last write is replaced: another daemon has restored an older one than this daemon knows.
      if (isFromBeforeLoss && (record.lastSentAtMs ?? 0) <= (storedRecord.lastSentAtMs ?? 0)) continue;
      const merged = storedRecord && !isFromBeforeLoss ? mergeRecords(record, storedRecord) : record;
      await store.putRecord(projectId, computeId, merged, lease);
    }
    return true;
  });
  return isDone === true;
}

/** Merges the record from before the loss with one that a daemon has written since, when the compute seemed new. Keeps the old baseline. */
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
