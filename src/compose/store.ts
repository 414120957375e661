import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createOverrideFile, type OverrideFile } from '../adapters/store/local-files.ts';
import { readReports } from '../app/operator/daemon-reports.ts';
import { createOverrides, lostOverrides, type Overrides } from '../app/overrides.ts';
import type { Outages } from '../app/telemetry/outages.ts';
import type { Result } from '../common/result.ts';
import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import type { Engine } from '../ports/engine.ts';
import type { Operator } from '../ports/operator.ts';
import type { Store, Stored, StoredOverrides } from '../ports/store.ts';
import type { Log, Telemetry } from '../ports/telemetry.ts';
import { defaultGroup, type Settings } from '../settings/settings.ts';
import { daemonOnFolder, folderOf } from './daemon-file.ts';

interface OpenStore {
  engine: Engine;
  store: Store;
  close(): Promise<void>;
}

/** Commands log nothing: they report errors themselves. */
export const SILENT_LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

interface Unopened {
  ok: false;
  problem: string;
  /** True if another process, such as a daemon, has the embedded store open. */
  isInUse: boolean;
}

/** An embedded store that does not exist or can't be opened. */
interface StoreNotRead {
  ok: true;
  /** Tells readers of a plan that the stored facts are missing. */
  note: string;
  /** The reason; absent if nothing is stored yet. */
  unread?: Unopened;
  /** The daemon that has the store open and can be asked instead. */
  daemon?: Operator;
}

/**
 * Opens the store of the settings for reading, and creates none. If an embedded store can't be opened, the result is a note, and the command goes
 * on. If a store on a server can't, the result is a problem.
 */
export async function openStoreToRead(
  settings: Settings,
): Promise<{ ok: true; opened: OpenStore; unusedNote?: string } | StoreNotRead | { ok: false; problem: string }> {
  const { kind, shown } = settings.queue;
  const isEmbedded = kind === 'embedded';
  if (isEmbedded && !existsSync(join(folderOf(settings.queue), 'db'))) {
    return { ok: true, note: `nothing is stored in ${shown} yet: every compute counts as newly discovered` };
  }
  const opening = await openStore(settings);
  if (opening.ok) {
    const unusedNote = await noteIfUnused(opening.value.store, settings);
    return { ok: true, opened: opening.value, ...(unusedNote !== undefined && { unusedNote }) };
  }
  if (!isEmbedded) return opening;
  const daemon = opening.isInUse ? await daemonOnFolder(settings.queue) : undefined;
  return {
    ok: true,
    unread: opening,
    ...(daemon && { daemon }),
    note: `${opening.problem}; planned without what it has stored: every compute counts as newly discovered`,
  };
}

/** Returns a note for people if neither a daemon nor `ebb apply` has stored anything: the command may read another group than theirs. */
export async function noteIfUnused(
  store: UsedStore,
  { queue, group, apiUrl, accounts }: Pick<Settings, 'queue' | 'group' | 'apiUrl' | 'accounts'>,
): Promise<string | undefined> {
  // If the store fails, the command reports that when it reads it.
  if (await isUsed(store).catch(() => true)) return undefined;
  const names = accounts.map(({ name }) => name).join(', ');
  const [users, variables] =
    group === defaultGroup(apiUrl, accounts)
      ? [`${apiUrl} (accounts: ${names})`, 'EBB_API_URL, accounts and EBB_GROUP']
      : [`the group ${group}`, 'EBB_GROUP'];
  return `no daemon has used ${queue.shown} for ${users} yet: if one runs, this command needs the same ${variables}`;
}

type UsedStore = Pick<Store, 'generation' | 'projectIds' | 'timeMs' | 'documents' | 'deleteDocuments' | 'approvals'>;

async function isUsed(store: UsedStore): Promise<boolean> {
  if ((await store.generation()) || (await store.projectIds()).length > 0) return true;
  // A daemon in observe mode registers no generation, and may not have read a compute yet.
  return (await readReports(store, await store.timeMs())).length > 0;
}

/** Opens the store for writing, and makes it if it doesn't exist. */
export async function openStore(settings: Settings): Promise<{ ok: true; value: OpenStore } | Unopened> {
  const { queue, group } = settings;
  // Loaded on use, since loading the engines takes longer than planning from a file, which needs none.
  const { openEngine } = await import('../adapters/engine/open-engine.ts');
  const opening = await openEngine({ url: queue.url.reveal(), group, log: SILENT_LOG });
  if (!opening.ok) {
    const { message, code } = opening.error;
    return { ok: false, problem: message, isInUse: code === 'in_use' };
  }
  const { engine } = opening;
  try {
    const remembered = await overrideFileOf(settings, SILENT_LOG).read();
    if (!remembered.ok) {
      await engine.close();
      return { ...remembered, isInUse: false };
    }
    const { createStore } = await import('../adapters/store/create-store.ts');
    const store = withRemembered(
      await createStore({ engine, log: SILENT_LOG }),
      remembered.value ?? { holds: [], freezes: [] },
    );
    return { ok: true, value: { engine, store, close: () => engine.close() } };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Adds the holds and freezes that a daemon on this machine remembers, if the store has lost them: nobody has ended them. */
function withRemembered(store: Store, kept: StoredOverrides): Store {
  const withLost = <E extends Hold | Freeze>(stored: Stored<E>, known: readonly E[], nowMs: number): Stored<E> => ({
    ...stored,
    entries: [...stored.entries, ...lostOverrides(stored, known, nowMs)],
  });
  const overrides: Store['overrides'] = async (nowMs) => {
    const { holds, freezes, revision } = await store.overrides(nowMs);
    return { holds: withLost(holds, kept.holds, nowMs), freezes: withLost(freezes, kept.freezes, nowMs), revision };
  };
  return {
    ...store,
    overrides,
    holds: async (nowMs) => [...(await overrides(nowMs)).holds.entries],
    freezes: async (nowMs) => [...(await overrides(nowMs)).freezes.entries],
  };
}

const STATE_FOLDER = 'state folder';

/** The file in which a daemon on this machine remembers holds and freezes. A daemon with an embedded store writes none. */
function overrideFileOf({ stateDir, group }: Settings, log: Log): OverrideFile {
  return createOverrideFile({ path: join(stateDir, `${group}.json`), log });
}

/**
 * Opens the holds and freezes that a daemon keeps in memory. A file remembers them in case the store is lost. With an embedded store there is no
 * file, since both would be lost together.
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
  const file = overrideFileOf(settings, telemetry.log);
  const read = await file.read();
  if (!read.ok) return read;

  async function save(current: StoredOverrides): Promise<void> {
    try {
      await file.keep(current);
      outages.up(STATE_FOLDER);
    } catch (error) {
      const { code = 'error' } = error as NodeJS.ErrnoException;
      const remedy =
        'freezes and holds would be lost with the store: let state_dir name a folder that ebb may write to';
      outages.down(STATE_FOLDER, `${settings.stateDir} can't be written to (${code}); ${remedy}`);
    }
  }

  const overrides = createOverrides({ telemetry, remembered: read.value, save });
  return { ok: true, value: { overrides, hasRun: read.value !== undefined } };
}
