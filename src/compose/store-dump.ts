import { randomUUID } from 'node:crypto';
import { createStore } from '../adapters/store/create-store.ts';
import { DumpProblem, dumpLines, readDump } from '../adapters/store/dump-file.ts';
import { LEADER_LEASE } from '../app/group/leader.ts';
import { dumpKeyOf, dumpStore, isExpired, storedKeys, writeDump } from '../app/store-dump.ts';
import { messageOf } from '../common/errors.ts';
import type { Result } from '../common/result.ts';
import { AUDIT_KINDS } from '../domain/records/history.ts';
import { RECOVERY } from '../domain/records/recovery-times.ts';
import type { Dumped, Store } from '../ports/store.ts';
import type { QueueLocation } from '../settings/addresses.ts';
import type { Settings } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';
import { daemonOnceStarted, folderOf } from './daemon-file.ts';
import { openStore, openStoreToRead, SILENT_LOG } from './store.ts';

type Counts = Record<'hold' | 'freeze' | 'record' | 'usage' | 'history' | 'audit', number>;

interface OpenDump {
  lines: AsyncIterable<string>;
  /** The number of entries read so far, by kind. */
  counts: Counts;
  /** Says that no daemon has used the store; see `noteIfUnused`. */
  unusedNote?: string | undefined;
  /** The records that could not be read, as PROJECT/COMPUTE; known once all lines have been read. */
  leftOut(): Promise<string[]>;
  close(): Promise<void>;
}

/** Reads the store of the settings as lines of a dump. */
export async function openDump(settings: Settings): Promise<Result<OpenDump>> {
  const { shown } = settings.queue;
  const stored = await openStoreToRead(settings);
  if (!stored.ok) return stored;
  if (!('opened' in stored)) {
    const { unread } = stored;
    if (!unread) return { ok: false, problem: `nothing is stored in ${shown} yet` };
    return unread.isInUse ? openDumpOfDaemon(settings.queue) : unread;
  }
  const { store, close } = stored.opened;
  const counts = noCounts();
  const { unusedNote } = stored;
  return {
    ok: true,
    value: { lines: linesOf(store, counts), counts, unusedNote, leftOut: () => leftOut(store), close },
  };
}

/** Asks the store nothing before the first line is read: a caller that has the lines can close the store. */
async function* linesOf(store: Store, counts: Counts): AsyncGenerator<string> {
  yield* dumpLines(counted(dumpStore(store, await store.timeMs()), counts));
}

/** Takes the dump of an embedded store from the daemon that has it open. */
async function openDumpOfDaemon(queue: QueueLocation): Promise<Result<OpenDump>> {
  const daemon = await daemonOnceStarted(folderOf(queue));
  if (!daemon)
    return {
      ok: false,
      problem: `a daemon is starting on ${queue.shown}, or another command uses it: dump again in a few seconds`,
    };
  const { dumpOfDaemon } = await import('../adapters/http/dump-client.ts');
  const counts = noCounts();
  let leftOut: string[] | undefined;
  const { url } = daemon;
  const received = dumpOfDaemon(daemon);
  async function* lines(): AsyncGenerator<string> {
    for await (const text of received) {
      const line = JSON.parse(text) as Dumped | { kind?: undefined; left_out?: string[] };
      if (line.kind !== undefined) counts[kindOf(line)] += 1;
      if (line.kind === undefined && line.left_out) leftOut = line.left_out;
      else yield `${text}\n`;
    }
    // The daemon's last line names what was left out. If this line is missing, the connection has ended early.
    if (!leftOut) throw new Error(`the dump of the daemon at ${url} was cut off: dump again`);
  }
  return { ok: true, value: { lines: lines(), counts, leftOut: async () => leftOut ?? [], close: async () => {} } };
}

/** Yields the lines that a daemon with an embedded store sends to `ebb store dump`: a dump, and a line with the records that can't be read. */
export async function* dumpForCommands(store: Store): AsyncGenerator<string> {
  yield* linesOf(store, noCounts());
  yield `${JSON.stringify({ left_out: await leftOut(store) })}\n`;
}

async function leftOut(store: Store): Promise<string[]> {
  return [...(await store.brokenRecords())].map(([compute, project]) => `${project}/${compute}`);
}

interface Loaded {
  /** The number of entries that are, or would be, written. */
  counts: Counts;
  /** Entries that are not written, since the store already has them. */
  skipped: string[];
  /** Holds and freezes that have expired, which are not written. */
  expired: number;
  /** Restore requests of the loaded records, which are not written. */
  restores: number;
  /** Why some entries were not written; absent if all were. */
  problem?: string;
}

interface LoadOptions {
  settings: Settings;
  path: string;
  /** False: `counts` only says what would be written. */
  isWritten: boolean;
  /** Accepts a store that is not empty. It keeps its entries. */
  acceptsEntries: boolean;
}

/** Loads a dump into the store of the settings. Reads the whole file before it writes anything. */
export async function loadDump({ settings, path, isWritten, acceptsEntries }: LoadOptions): Promise<Result<Loaded>> {
  try {
    const opening = await openStore(settings);
    if (!opening.ok) return opening;
    const { engine, close } = opening.value;
    try {
      // Not `opening.value.store`, which adds the holds and freezes that this machine remembers.
      const store = await createStore({ engine, log: SILENT_LOG });
      return await withoutDaemons(store, settings, (holder) =>
        load({ store, holder }, { path, isWritten, acceptsEntries }),
      );
    } finally {
      await close();
    }
  } catch (error) {
    if (error instanceof DumpProblem) return { ok: false, problem: error.message };
    return { ok: false, problem: `the store: ${messageOf(error)}` };
  }
}

async function load(
  deps: { store: Store; holder: string },
  { path, isWritten, acceptsEntries }: Omit<LoadOptions, 'settings'>,
): Promise<Result<Loaded>> {
  const { store } = deps;
  const nowMs = await store.timeMs();
  const inStore = await storedKeys(store, nowMs);
  if (inStore.size > 0 && !acceptsEntries) {
    const problem = `the store is not empty, it has ${inStore.size} entries: load into an empty one, or give --keep to leave them`;
    return { ok: false, problem };
  }
  const loaded = await read(path, inStore, nowMs);
  return isWritten ? writeAudited(deps, path, { loaded, nowMs }) : { ok: true, value: loaded };
}

async function read(path: string, inStore: ReadonlySet<string>, nowMs: number): Promise<Loaded> {
  const counts = noCounts();
  const skipKeys = new Set<string>();
  let expired = 0;
  let restores = 0;
  for await (const dumped of readDump(path)) {
    const key = dumpKeyOf(dumped);
    if (inStore.has(key)) skipKeys.add(key);
    else if (isExpired(dumped, nowMs)) expired += 1;
    else {
      counts[kindOf(dumped)] += 1;
      if (dumped.kind === 'record' && dumped.record.restore) restores += 1;
    }
  }
  return { counts, skipped: [...skipKeys], expired, restores };
}

/** Writes the dump, and an audit entry that counts what was written. `problem` is about the first entry that the store did not take. */
async function writeAudited(
  deps: { store: Store; holder: string },
  path: string,
  { loaded, nowMs }: { loaded: Loaded; nowMs: number },
): Promise<Result<Loaded>> {
  const counts = { ...loaded.counts };
  const notWritten = await writeDump(deps, readDump(path), { nowMs, skipKeys: new Set(loaded.skipped) });
  for (const { dumped } of notWritten) counts[kindOf(dumped)] -= 1;
  await deps.store.appendHistory([auditOf(counts, nowMs)]);
  const [first] = notWritten;
  if (!first) return { ok: true, value: loaded };
  return {
    ok: true,
    value: { ...loaded, counts, problem: `${first.problem} (entries not written: ${notWritten.length})` },
  };
}

/** Works under the leader lease, so that no daemon leads. If the work outlasts the lease, the leases of projects still protect their records. */
async function withoutDaemons<T>(
  store: Store,
  { queue }: Settings,
  work: (holder: string) => Promise<Result<T>>,
): Promise<Result<T>> {
  const holder = randomUUID();
  const lease = await store.acquireLease(LEADER_LEASE, holder, RECOVERY.leaderLeaseMs);
  if (!lease) return { ok: false, problem: `a daemon runs on ${queue.shown}: stop all daemons, and load again` };
  try {
    return await work(holder);
  } finally {
    await store.releaseLease(lease);
  }
}

function auditOf(counts: Counts, atMs: number) {
  const { who, requestId } = commandLineCaller();
  const { hold, freeze, record } = counts;
  const message = `the store was loaded from a dump: ${hold} holds, ${freeze} freezes, ${record} records`;
  const reasons = [{ code: 'restore', message }];
  return { atMs, projectId: '', computeId: '', kind: 'restore', setHash: '', reasons, who, requestId } as const;
}

function noCounts(): Counts {
  return { hold: 0, freeze: 0, record: 0, usage: 0, history: 0, audit: 0 };
}

function kindOf(dumped: Dumped): keyof Counts {
  return dumped.kind === 'history' && AUDIT_KINDS.has(dumped.entry.kind) ? 'audit' : dumped.kind;
}

async function* counted(entries: AsyncIterable<Dumped>, counts: Counts): AsyncGenerator<Dumped> {
  for await (const dumped of entries) {
    counts[kindOf(dumped)] += 1;
    yield dumped;
  }
}
