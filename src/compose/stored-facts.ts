import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { createOverrideFile, type OverrideFile } from '../adapters/store/override-file.ts';
import { readSamples } from '../app/connections/samples.ts';
import { readReports } from '../app/operator/daemon-reports.ts';
import { createOverrides, lostFrom, type Overrides } from '../app/overrides.ts';
import { readReadyWaves } from '../app/stored-waves.ts';
import type { Outages } from '../app/telemetry/outages.ts';
import { readBudgets } from '../app/usage/budget-store.ts';
import type { Result } from '../common/result.ts';
import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import type { ReadyWaves } from '../domain/policy/waves.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { BudgetOutlook } from '../domain/spend/state.ts';
import type { Engine } from '../ports/engine.ts';
import type { ConnectionSample, Store, Stored, StoredOverrides } from '../ports/store.ts';
import type { Log, Telemetry } from '../ports/telemetry.ts';
import type { Settings } from '../settings/settings.ts';

/** Projects whose records are read at once. */
const CONCURRENT_READS = 16;

/** The stored facts that a plan needs. Maps are by compute id. */
export interface StoredFacts {
  records: ReadonlyMap<string, ComputeRecord>;
  holds: readonly Hold[];
  freezes: readonly Freeze[];
  samples: ReadonlyMap<string, readonly ConnectionSample[]>;
  budgets: readonly BudgetOutlook[];
  /** In which waves computes become ready, as far as that is fixed. */
  readyWaves: readonly ReadyWaves[];
  /** Staged changes, one line each. */
  staged?: readonly string[];
  /** Projects of computes, where what is stored was told by a daemon. */
  projects?: ReadonlyMap<string, string>;
}

interface OpenStore {
  engine: Engine;
  store: Store;
  close(): Promise<void>;
}

/** Nothing is known of any compute: what a plan starts from without a store. */
export const NOTHING_STORED: StoredFacts = {
  ...{ records: new Map(), holds: [], freezes: [], samples: new Map(), budgets: [], readyWaves: [] },
};

/** For commands that say themselves what goes wrong. */
export const SILENT_LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * The store of the settings, if there is one to read. None is made for that; and an embedded one that a daemon holds can't be read:
 * `note` then says so, and nothing is known. A server that does not answer is a problem.
 */
export async function openStoreToRead(
  settings: Settings,
): Promise<
  { ok: true; opened: OpenStore } | { ok: true; note: string; inUse: boolean } | { ok: false; problem: string }
> {
  const { kind, url, shown } = settings.queue;
  const embedded = kind === 'embedded';
  if (embedded && !existsSync(join(url.reveal().slice('embedded:'.length), 'db'))) {
    return {
      ok: true,
      inUse: false,
      note: `nothing is stored in ${shown} yet: every compute counts as newly discovered`,
    };
  }
  const opening = await openStore(settings);
  if (opening.ok) return { ok: true, opened: opening.value };
  if (!embedded) return opening;
  return {
    ok: true,
    inUse: true,
    note: `${opening.problem}; planned without what it has stored: every compute counts as newly discovered`,
  };
}

/** Opens the store to write; makes it if it is not there. */
export async function openStore(settings: Settings): Promise<Result<OpenStore>> {
  const { queue, group } = settings;
  // Loading the engines takes longer than planning from a file, which needs none.
  const { openEngine } = await import('../adapters/engine/open-engine.ts');
  const opening = await openEngine({ url: queue.url.reveal(), group, log: SILENT_LOG });
  if (!opening.ok) return { ok: false, problem: opening.error.message };
  const { engine } = opening;
  try {
    const known = await openKept(settings, SILENT_LOG).read();
    if (!known.ok) {
      await engine.close();
      return known;
    }
    const { createStore } = await import('../adapters/store/create-store.ts');
    const store = withKept(await createStore({ engine, log: SILENT_LOG }), known.value ?? { holds: [], freezes: [] });
    return { ok: true, value: { engine, store, close: () => engine.close() } };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** The store with the holds and freezes that a daemon of this machine knew and that it has lost since: nobody has ended them. */
function withKept(store: Store, known: StoredOverrides): Store {
  const added = <E extends Hold | Freeze>(stored: Stored<E>, kept: readonly E[], nowMs: number): Stored<E> => ({
    ...stored,
    entries: [...stored.entries, ...lostFrom(stored, kept, nowMs)],
  });
  const overrides: Store['overrides'] = async (nowMs) => {
    const { holds, freezes, revision } = await store.overrides(nowMs);
    return { holds: added(holds, known.holds, nowMs), freezes: added(freezes, known.freezes, nowMs), revision };
  };
  return {
    ...store,
    overrides,
    holds: async (nowMs) => [...(await overrides(nowMs)).holds.entries],
    freezes: async (nowMs) => [...(await overrides(nowMs)).freezes.entries],
  };
}

/** Everything that a plan of these projects needs; samples of these computes. */
export async function factsIn(
  store: Store,
  wanted: { projectIds: readonly string[]; computeIds: readonly string[]; nowMs: number },
): Promise<StoredFacts> {
  const known = new Set(await store.projectIds());
  const records = new Map<string, ComputeRecord>();
  const projectIds = wanted.projectIds.filter((id) => known.has(id));
  await pLimit(CONCURRENT_READS).map(projectIds, async (projectId) => {
    for (const [computeId, record] of await store.records(projectId)) records.set(computeId, record);
  });
  const samples = await readSamples(store, wanted.computeIds);
  const [holds, freezes] = await Promise.all([store.holds(wanted.nowMs), store.freezes(wanted.nowMs)]);
  const budgets = (await readBudgets(store)) ?? [];
  const readyWaves = (await readReadyWaves(store)) ?? [];
  const staged = (await readReports(store, wanted.nowMs)).flatMap((daemon) => daemon.staged);
  return { records, holds, freezes, samples, budgets, readyWaves, staged: [...new Set(staged)] };
}

const STATE_FOLDER = 'state folder';

/** The file of what people said: nothing is kept in it for an embedded store. */
function openKept({ stateDir, group }: Settings, log: Log): OverrideFile {
  return createOverrideFile({ path: join(stateDir, `${group}.json`), log });
}

/**
 * Holds and freezes as known on this machine: where the store can be lost on its own, a file outlives it. An embedded store lies in the
 * same folder as that file would.
 */
export async function rememberOverrides(options: {
  settings: Settings;
  telemetry: Telemetry;
  outages: Outages;
}): Promise<Result<{ overrides: Overrides; hasRun: boolean }>> {
  const { settings, telemetry, outages } = options;
  if (settings.queue.kind === 'embedded') {
    return { ok: true, value: { overrides: createOverrides({ telemetry }), hasRun: false } };
  }
  const file = openKept(settings, telemetry.log);
  const read = await file.read();
  if (!read.ok) return read;

  async function keep(known: StoredOverrides): Promise<void> {
    try {
      await file.keep(known);
      outages.up(STATE_FOLDER);
    } catch (error) {
      const { code = 'error' } = error as NodeJS.ErrnoException;
      const remedy =
        'freezes and holds would be lost with the store: let state_dir name a folder that ebb may write to';
      outages.down(STATE_FOLDER, `${settings.stateDir} can't be written to (${code}); ${remedy}`);
    }
  }

  const overrides = createOverrides({ telemetry, remembered: read.value, keep });
  return { ok: true, value: { overrides, hasRun: read.value !== undefined } };
}
