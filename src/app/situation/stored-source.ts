/** Stored facts for commands, from a shared store or from the daemon that has an embedded store open. */

import pLimit from 'p-limit';
import type { GuardStates } from '../../domain/guards/state.ts';
import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { parsedOrAll } from '../../domain/policy/selector.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { isRecentReport, recentReports } from '../../domain/records/recovery-times.ts';
import type { BudgetOutlook } from '../../domain/spend/state.ts';
import { msOfIso } from '../../domain/time/units.ts';
import type { BudgetDocument } from '../../ports/cost-documents.ts';
import type {
  DecisionDocument,
  FreezeDocument,
  HerdDocument,
  HoldDocument,
  StatusDocument,
} from '../../ports/documents.ts';
import type { Operator, OperatorResult } from '../../ports/operator.ts';
import type { ConnectionSample, Store } from '../../ports/store.ts';
import type { RecordsDocument } from '../../ports/stored-documents.ts';
import { readSamples } from '../connections/samples.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import { readGuardStates } from '../guards/stored-states.ts';
import { readReports } from '../operator/daemon-reports.ts';
import { decisionDocument } from '../operator/documents.ts';
import { findInStore } from '../operator/find-compute.ts';
import { allRecords } from '../operator/parts.ts';
import { type AskForPage, auditEntries, itemsOfAllPages } from '../pages.ts';
import { collectReadings, isAbout, readReadings, type SharedFleet } from '../readings/read-readings.ts';
import { readReadyWaves } from '../stored-waves.ts';
import { readBudgets } from '../usage/budget-store.ts';
import type { StoredUsage } from '../usage/usage-account.ts';
import { type StagedPart, stagedInReports, stagedInStatus } from './staged-parts.ts';

/** Projects whose records are read concurrently. */
const CONCURRENT_READS = 16;

/** The stored facts that a decision needs. Maps are by compute id. */
export interface StoredFacts {
  records: ReadonlyMap<string, ComputeRecord>;
  holds: readonly Hold[];
  freezes: readonly Freeze[];
  samples: ReadonlyMap<string, readonly ConnectionSample[]>;
  budgets: readonly BudgetOutlook[];
  /** True if daemons run, but have not stored yet which steps limit, as right after a loss of the store's data. */
  budgetsUnknown?: boolean | undefined;
  /** The waves that the leader has fixed. */
  readyWaves: readonly ReadyWaves[];
  /** The parts of the policy set that wait for approval. */
  staged: readonly StagedPart[];
  /** The last verdicts of guards, and their watches. */
  guards: GuardStates;
  /** The modes of the daemons that are known to run; empty if none is known. */
  modes: readonly Mode[];
}

/** The facts to read from a store. A daemon always returns everything. */
export interface FactsQuery {
  projectIds: readonly string[];
  /** Computes whose connection counts are needed. */
  computeIds: readonly string[];
  /** Reads verdicts and watches of guards, too. */
  readGuards?: boolean;
  nowMs: number;
}

export interface StoredSource {
  facts(wanted: FactsQuery): Promise<StoredFacts>;
  /** Returns the id of the project that has this compute, id or name; undefined if no such project is stored. */
  projectOf(subject: string): Promise<string | undefined>;
  /** The fleet as daemons have read it; undefined if unknown. Later calls return the same reading, unless `again` is true. */
  readings(again?: boolean): Promise<SharedFleet | undefined>;
  /** True if a daemon is known to run. */
  daemonRuns(): Promise<boolean>;
  /** The records of all computes of these projects, and perhaps of others, by compute id. */
  records(projectIds: readonly string[]): Promise<StoredFacts['records']>;
  /** The boundaries of many computes that daemons expect soon. */
  herds(): Promise<readonly HerdDocument[]>;
  /** The assumptions that the user must know, one line each. */
  notes: readonly string[];
}

export interface FleetFact<Facts> {
  readFromStore(store: Store, nowMs: number): Promise<Facts>;
  /** Undefined if the daemon does not answer. */
  readFromDaemon(operator: Operator): Promise<Facts | undefined>;
}

/** Facts of the whole fleet that commands may read one by one: a command that needs only one doesn't fail if another can't be read. */
export const FLEET_FACTS: { readonly [Name in 'holds' | 'budgets' | 'records']: FleetFact<StoredFacts[Name]> } = {
  holds: {
    readFromStore: (store, nowMs) => store.holds(nowMs),
    readFromDaemon: async (operator) => (await readAllPages((query) => operator.holds(query)))?.map(holdOf),
  },
  records: {
    readFromStore: async (store) =>
      new Map((await allRecords(store)).map(({ computeId, record }) => [computeId, record])),
    readFromDaemon: async (operator) => {
      const documents = await recordsOf(operator, undefined);
      return documents && new Map(documents.flatMap(({ records }) => Object.entries(records)));
    },
  },
  budgets: {
    readFromStore: async (store) => (await readBudgets(store)) ?? [],
    async readFromDaemon(operator) {
      const status = await operator.status();
      return status.ok ? outlooksOf(status.value) : undefined;
    },
  },
};

/** The herds that the leader has reported to the store. */
export async function herdsInStore(store: Store): Promise<readonly HerdDocument[]> {
  return (await readReports(store, await store.timeMs()))[0]?.herds ?? [];
}

export async function herdsFromDaemon(operator: Operator): Promise<readonly HerdDocument[]> {
  return herdsOf(await operator.status());
}

/** Daemons of an older version report no herds. */
function herdsOf(status: OperatorResult<StatusDocument>): readonly HerdDocument[] {
  return (status.ok && status.value.herds) || [];
}

/** The audit entry of a lowering that a guard undid. */
export type Undo = DecisionDocument;

/** The lowerings that guards undid between two instants (milliseconds since the epoch), oldest first, from the audit. */
export function undosBetween(sinceMs: number, untilMs: number): FleetFact<readonly DecisionDocument[]> {
  const undos = (all: readonly DecisionDocument[]) =>
    all
      .filter(({ kind, reasons }) => kind === 'guard' && reasons.some(({ code }) => code === 'guard_floor'))
      .toReversed();
  return {
    async readFromStore(store) {
      const entries: DecisionDocument[] = [];
      for await (const entry of auditEntries(store, { sinceMs, untilMs }))
        if (entry.kind === 'guard') entries.push(decisionDocument(entry));
      return undos(entries);
    },
    async readFromDaemon(operator) {
      const all = await readAllPages((query) => operator.audit({ ...query, kind: 'guard', sinceMs, untilMs }));
      return all && undos(all);
    },
  };
}

/** Returns a source without facts: every compute counts as newly discovered. */
export function emptySource(notes: readonly string[] = []): StoredSource {
  const facts: StoredFacts = {
    records: new Map(),
    holds: [],
    freezes: [],
    samples: new Map(),
    budgets: [],
    readyWaves: [],
    staged: [],
    guards: new Map(),
    modes: [],
  };
  return {
    facts: async () => facts,
    projectOf: async () => undefined,
    readings: async () => undefined,
    daemonRuns: async () => false,
    records: async () => facts.records,
    herds: async () => [],
    notes,
  };
}

export function sourceFromStore(store: Store, notes: readonly string[] = []): StoredSource {
  const readRecords = recordsInStore(store);
  const readings = once(() => readReadings(store));
  return {
    facts: (wanted) => readFacts(store, wanted, readRecords),
    projectOf: async (subject) =>
      projectIn(await readings(), subject) ?? (await findInStore({ store }, subject))?.projectId,
    readings,
    daemonRuns: () => daemonRuns(store),
    records: readRecords,
    herds: () => herdsInStore(store),
    notes,
  };
}

function once<T>(read: () => Promise<T>): (again?: boolean) => Promise<T> {
  let reading: Promise<T> | undefined;
  return (again = false) => {
    if (again || !reading) reading = read();
    return reading;
  };
}

export async function daemonRuns(store: Store): Promise<boolean> {
  const nowMs = await store.timeMs();
  return (await readReports(store, nowMs)).some((report) => isRecentReport(report, nowMs));
}

/** Returns the id of the project that has this compute, id or name; undefined if there is none, or several. */
function projectIn(fleet: SharedFleet | undefined, subject: string): string | undefined {
  const found = [...(fleet?.readings.values() ?? [])].filter((reading) => isAbout(reading, subject));
  return found.length === 1 ? found[0]?.project.projectId : undefined;
}

/** Reads the records of each project once. */
export function recordsInStore(store: Pick<Store, 'projectIds' | 'records'>): StoredSource['records'] {
  const recordsByProject = new Map<string, ReadonlyMap<string, ComputeRecord>>();
  return async (projectIds) => {
    const stored = new Set(await store.projectIds());
    const unread = projectIds.filter((id) => stored.has(id) && !recordsByProject.has(id));
    await pLimit(CONCURRENT_READS).map(unread, async (id) => void recordsByProject.set(id, await store.records(id)));
    return new Map(projectIds.flatMap((id) => [...(recordsByProject.get(id) ?? [])]));
  };
}

async function readFacts(store: Store, wanted: FactsQuery, readRecords: StoredSource['records']): Promise<StoredFacts> {
  const records = await readRecords(wanted.projectIds);
  const samples = await readSamples(store, wanted.computeIds);
  const { nowMs } = wanted;
  const [holds, freezes] = await Promise.all([FLEET_FACTS.holds.readFromStore(store, nowMs), store.freezes(nowMs)]);
  const stored = await readBudgets(store);
  const readyWaves = (await readReadyWaves(store)) ?? [];
  const reports = recentReports(await readReports(store, nowMs), nowMs);
  const staged = stagedInReports(reports);
  const modes = reports.map(({ mode }) => mode);
  const guards = wanted.readGuards ? await readGuardStates(store) : new Map();
  // While a set waits for approval, nothing is decided by it.
  const budgetsUnknown = stored === undefined && reports.length > 0 && staged.length === 0;
  return { records, holds, freezes, samples, budgets: stored ?? [], budgetsUnknown, readyWaves, staged, guards, modes };
}

/** Facts from a daemon are used for this long, in milliseconds: a live read of the fleet takes minutes, in which ebb changes computes. */
const FACTS_FRESH_MS = 30_000;

/**
 * Reads everything from a daemon; undefined if it doesn't answer. If the daemon knows `compute`, reads only the records of its project.
 * `now` returns milliseconds since the epoch.
 */
export async function sourceFromDaemon(
  operator: Operator,
  { compute, now }: { compute?: string | undefined; now: () => number },
): Promise<StoredSource | undefined> {
  const first = await factsFromDaemon(operator, compute);
  if (!first) return undefined;
  const readAtMs = now();
  const { facts, documents, herds } = first;
  const readings = once(() => readingsFromDaemon(operator));
  return {
    async facts() {
      const isFresh = now() - readAtMs <= FACTS_FRESH_MS;
      return (isFresh ? undefined : await factsFromDaemon(operator, compute))?.facts ?? facts;
    },
    projectOf: async (subject) =>
      documents.find(({ records }) => Object.hasOwn(records, subject))?.project_id ??
      projectIn(await readings(), subject),
    readings,
    daemonRuns: async () => true,
    records: async () => facts.records,
    herds: async () => herds,
    notes: [],
  };
}

async function factsFromDaemon(operator: Operator, compute: string | undefined) {
  const [documents, holds, freezes, status] = await Promise.all([
    recordsOf(operator, compute),
    FLEET_FACTS.holds.readFromDaemon(operator),
    readAllPages((query) => operator.freezes(query)),
    operator.status(),
  ]);
  if (!documents || !holds || !freezes) return undefined;
  const facts: StoredFacts = {
    records: new Map(documents.flatMap(({ records }) => Object.entries(records))),
    holds,
    freezes: freezes.map(freezeOf),
    samples: new Map(documents.flatMap(({ samples }) => Object.entries(samples))),
    budgets: status.ok ? outlooksOf(status.value) : [],
    // A daemon does not send the fixed waves, so the caller computes them from the fleet.
    readyWaves: [],
    staged: status.ok ? stagedInStatus(status.value) : [],
    guards: new Map(documents.flatMap(({ guards }) => Object.entries(guards ?? {}))),
    modes: status.ok && status.value.mode !== null ? [status.value.mode] : [],
  };
  return { facts, documents, herds: herdsOf(status) };
}

/** The daemon's readings of the fleet; undefined if it doesn't answer, or is of a version without readings. */
export async function readingsFromDaemon(operator: Operator): Promise<SharedFleet | undefined> {
  const pages = await readAllPages((query) => operator.readings(query));
  if (!pages) return undefined;
  const collections = pages.map(({ collection, documents, at }) => ({
    collection,
    documents: new Map(Object.entries(documents)),
    atMs: msOfIso(at),
  }));
  return collectReadings(collections);
}

/** Reads usage from a daemon, once for each account. */
export function usageFromDaemon(operator: Operator): StoredUsage {
  const readings = new Map<string, Promise<Map<string, Uint8Array>>>();
  const readOnce = (account: string) => {
    const reading = readings.get(account) ?? readUnits(operator, account);
    readings.set(account, reading);
    return reading;
  };
  return {
    usageUnits: async (account) => [...(await readOnce(account)).keys()],
    async usage(account, units) {
      const stored = await readOnce(account);
      return new Map(units.flatMap((unit) => (stored.has(unit) ? [[unit, stored.get(unit) as Uint8Array]] : [])));
    },
  };
}

async function readUnits(operator: Operator, account: string): Promise<Map<string, Uint8Array>> {
  const units = (await readAllPages((query) => operator.usage({ account, ...query }))) ?? [];
  return new Map(units.map(({ unit, bytes }) => [unit, Buffer.from(bytes, 'base64')]));
}

async function recordsOf(operator: Operator, compute: string | undefined): Promise<RecordsDocument[] | undefined> {
  if (compute !== undefined) {
    // An older daemon ignores the parameter, and returns all records.
    const documents = await readAllPages((query) => operator.records({ ...query, compute }));
    if (documents?.some(({ records }) => Object.hasOwn(records, compute))) return documents;
  }
  // Also if `compute` is not the id of a compute, but the name of a project.
  return readAllPages((query) => operator.records(query));
}

/** Undefined if the daemon refuses a page. */
async function readAllPages<T>(ask: AskForPage<T>): Promise<T[] | undefined> {
  const all = await itemsOfAllPages(ask);
  return all.ok ? all.value : undefined;
}

function holdOf(document: HoldDocument): Hold {
  const { project_id: projectId, compute_id: computeId, size, suspend_timeout_seconds: seconds, freeze } = document;
  return {
    projectId,
    computeId,
    ...overrideOf(document),
    ...(size && { size: { minCu: size.min_cu, maxCu: size.max_cu } }),
    ...(seconds !== null && { suspendTimeoutSeconds: seconds }),
    ...(freeze && { freeze }),
  };
}

function freezeOf(document: FreezeDocument): Freeze {
  return { ...overrideOf(document), select: parsedOrAll(document.select), allowRaise: document.allow_raise };
}

/** Daemons of an older version have no budgets. */
function outlooksOf({ budgets = [] }: StatusDocument): BudgetOutlook[] {
  return budgets.map(outlookOf);
}

function outlookOf(document: BudgetDocument): BudgetOutlook {
  const { budget: policy, account, month, spent, projected } = document;
  const spans = document.limiting.map(({ at, of, from, until }) => ({
    policy,
    account,
    at,
    of,
    fromMs: msOfIso(from),
    untilMs: msOfIso(until),
  }));
  return {
    policy,
    account,
    month,
    fromMs: msOfIso(document.from),
    toMs: msOfIso(document.to),
    knownUntilMs: msOfIso(document.known_until),
    spent,
    projected,
    spans,
  };
}

function overrideOf({
  id,
  owner,
  reason,
  created_at: createdAt,
  expires_at: expiresAt,
}: HoldDocument | FreezeDocument) {
  const expiresAtMs = expiresAt === null ? Number.POSITIVE_INFINITY : msOfIso(expiresAt);
  return { id, owner, reason, createdAtMs: msOfIso(createdAt), expiresAtMs };
}
