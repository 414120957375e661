import { chunksOf } from '../common/chunks.ts';
import { withoutRestore } from '../domain/overrides/restore.ts';
import type { HistoryEntry } from '../domain/records/history.ts';
import { DAY_MS } from '../domain/time/units.ts';
import type { Dumped, Lease, Store } from '../ports/store.ts';
import { type LeaseDeps, withProjectLease } from './leases/locked-project.ts';
import { auditEntries } from './pages.ts';

/** One day more than any store keeps the audit (adapters/store/limits.ts). */
const AUDIT_DAYS = 367;
/** The most history entries that one call writes. */
const ENTRIES_PER_CALL = 1000;

/** The most units of usage that one call reads or writes. */
const USAGE_CHUNK = 300;

/**
 * Yields the store's holds, freezes, records, usage, history and audit, the last two oldest first. Unreadable records are left out; {@link
 * Store.brokenRecords} names them afterwards.
 */
export async function* dumpStore(store: Store, nowMs: number): AsyncGenerator<Dumped> {
  for (const hold of await store.holds(nowMs)) yield { kind: 'hold', hold };
  for (const freeze of await store.freezes(nowMs)) yield { kind: 'freeze', freeze };
  for (const projectId of (await store.projectIds()).sort()) {
    const records = [...(await store.records(projectId))];
    for (const [computeId, record] of records.sort(([a], [b]) => (a < b ? -1 : 1))) {
      yield { kind: 'record', projectId, computeId, record };
    }
  }
  yield* dumpUsage(store);
  const history = await store.history({ limit: Number.MAX_SAFE_INTEGER, withoutAudit: true });
  for (const entry of history.reverse()) yield { kind: 'history', entry };
  for (let days = AUDIT_DAYS; days >= 0; days -= 1) {
    const sinceMs = nowMs - days * DAY_MS;
    const untilMs = days === 0 ? Number.MAX_SAFE_INTEGER : sinceMs + DAY_MS - 1;
    // The day is read completely before it is yielded, since the store lists the newest entry first.
    const entries: HistoryEntry[] = [];
    for await (const entry of auditEntries(store, { sinceMs, untilMs })) entries.push(entry);
    for (const entry of entries.reverse()) yield { kind: 'history', entry };
  }
}

async function* dumpUsage(store: Store): AsyncGenerator<Dumped> {
  for (const account of await store.usageAccounts()) {
    const units = await store.usageUnits(account);
    for (const chunk of chunksOf(units, USAGE_CHUNK)) {
      const found = await store.usage(account, chunk);
      for (const unit of chunk) {
        const bytes = found.get(unit);
        if (bytes) yield { kind: 'usage', account, unit, bytes: Buffer.from(bytes).toString('base64') };
      }
    }
  }
}

/** Returns the keys ({@link dumpKeyOf}) of the entries that a store already has. */
export async function storedKeys(store: Store, nowMs: number): Promise<ReadonlySet<string>> {
  const { holds, freezes } = await store.overrides(nowMs);
  const keys = new Set([
    ...[...holds.entries.map(({ id }) => id), ...holds.endedIds].map((id) => `hold ${id}`),
    ...[...freezes.entries.map(({ id }) => id), ...freezes.endedIds].map((id) => `freeze ${id}`),
  ]);
  for (const projectId of await store.projectIds()) {
    for (const computeId of (await store.records(projectId)).keys()) keys.add(`record ${projectId}/${computeId}`);
  }
  for (const account of await store.usageAccounts()) keys.add(`usage ${account}`);
  for (const [computeId, projectId] of await store.brokenRecords()) keys.add(`record ${projectId}/${computeId}`);
  if ((await store.history({ limit: 1 })).length > 0) keys.add(HISTORY);
  return keys;
}

/** All entries have one key: since they are appended in the order of time, none is loaded into a store that already has entries. */
const HISTORY = 'history and audit';

export function dumpKeyOf(dumped: Dumped): string {
  switch (dumped.kind) {
    case 'hold':
      return `hold ${dumped.hold.id}`;
    case 'freeze':
      return `freeze ${dumped.freeze.id}`;
    case 'record':
      return `record ${dumped.projectId}/${dumped.computeId}`;
    case 'usage':
      return `usage ${dumped.account}`;
    case 'history':
      return HISTORY;
  }
}

/** True for a hold or freeze that has expired at `nowMs`, milliseconds since the epoch. */
export function isExpired(dumped: Dumped, nowMs: number): boolean {
  if (dumped.kind === 'hold') return dumped.hold.expiresAtMs <= nowMs;
  return dumped.kind === 'freeze' && dumped.freeze.expiresAtMs <= nowMs;
}

interface NotWritten {
  dumped: Dumped;
  /** Why, as one line. */
  problem: string;
}

/**
 * Writes a dump to the store, except for entries with a key in `skipKeys` and expired holds and freezes. Restore requests are left out,
 * since nobody has confirmed them for the present fleet. Returns the entries that the store did not take; the others are written.
 */
export async function writeDump(
  deps: LeaseDeps,
  dump: AsyncIterable<Dumped>,
  { nowMs, skipKeys }: { nowMs: number; skipKeys: ReadonlySet<string> },
): Promise<NotWritten[]> {
  const { store } = deps;
  const usage = createUsageWriter(store);
  const notWritten: NotWritten[] = [];
  let entries: HistoryEntry[] = [];
  for await (const dumped of dump) {
    if (skipKeys.has(dumpKeyOf(dumped)) || isExpired(dumped, nowMs)) continue;
    if (dumped.kind === 'history') {
      entries.push(dumped.entry);
      if (entries.length < ENTRIES_PER_CALL) continue;
      await store.appendHistory(entries);
      entries = [];
    } else if (dumped.kind === 'usage') await usage.add(dumped);
    else {
      const problem = await write(deps, dumped);
      if (problem !== undefined) notWritten.push({ dumped, problem });
    }
  }
  await usage.write();
  await store.appendHistory(entries);
  return notWritten;
}

/** Collects units of an account and writes them together. */
function createUsageWriter(store: Store) {
  let account = '';
  let units = new Map<string, Uint8Array>();
  async function write(): Promise<void> {
    if (units.size > 0) await store.putUsage(account, units);
    units = new Map();
  }
  return {
    async add(dumped: Extract<Dumped, { kind: 'usage' }>): Promise<void> {
      if (dumped.account !== account || units.size >= USAGE_CHUNK) await write();
      account = dumped.account;
      units.set(dumped.unit, Buffer.from(dumped.bytes, 'base64'));
    },
    write,
  };
}

async function write(
  deps: LeaseDeps,
  dumped: Exclude<Dumped, { kind: 'history' | 'usage' }>,
): Promise<string | undefined> {
  const { store } = deps;
  if (dumped.kind === 'record') {
    const { projectId, computeId, record } = dumped;
    const put = (lease: Lease) => store.putRecord(projectId, computeId, withoutRestore(record), lease);
    if (await withProjectLease(deps, projectId, put)) return undefined;
    return `${projectId} is in use by a daemon: stop all daemons, and load again with --keep`;
  }
  const entry = dumped.kind === 'hold' ? dumped.hold : dumped.freeze;
  const outcome = dumped.kind === 'hold' ? await store.putHold(dumped.hold) : await store.putFreeze(dumped.freeze);
  return outcome.ok ? undefined : `the store takes no more than ${outcome.error.limit} of ${dumped.kind}: ${entry.id}`;
}
