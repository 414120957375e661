import { createOperatorClient } from '../adapters/http/operator-client.ts';
import { readBudgets } from '../app/usage/budget-store.ts';
import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import { parsedOrAll } from '../domain/policy/selector.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { BudgetOutlook } from '../domain/spend/state.ts';
import type { BudgetDocument } from '../ports/cost-documents.ts';
import type { FreezeDocument, HoldDocument, RecordsDocument } from '../ports/documents.ts';
import { MOST_PER_PAGE, type Operator, type OperatorResult, type Page, type PageQuery } from '../ports/operator.ts';
import type { Store } from '../ports/store.ts';
import type { Settings } from '../settings/settings.ts';
import { folderOf, readDaemonFile } from './daemon-file.ts';
import { NOTHING_STORED, openStoreToRead, type StoredFacts } from './stored-facts.ts';

/**
 * Facts where the store can't be read: from the daemon that holds it, else none, with a note. Where the daemon knows `compute`, records
 * are of its project alone.
 */
export async function factsWithoutStore(
  settings: Settings,
  { note, inUse }: { note: string; inUse: boolean },
  compute?: string,
): Promise<{ facts: StoredFacts; notes: string[] }> {
  const facts = inUse ? await factsOfDaemon(settings, compute) : undefined;
  return facts ? { facts, notes: [] } : { facts: NOTHING_STORED, notes: [note] };
}

/** The holds that are active, of the store or of the daemon that has it; none where there is no store. */
export async function readHolds(
  settings: Settings,
  nowMs: number,
): Promise<{ holds: readonly Hold[]; notes: string[] }> {
  const { known, notes } = await readKnown(settings, 'holds', {
    inStore: (store) => store.holds(nowMs),
    ofDaemon: (facts) => facts.holds,
  });
  return { holds: known ?? [], notes };
}

/** The state of budgets, read in the same way. */
export async function readKnownBudgets(
  settings: Settings,
): Promise<{ budgets: readonly BudgetOutlook[]; notes: string[] }> {
  const { known, notes } = await readKnown(settings, 'budgets', {
    inStore: readBudgets,
    ofDaemon: (facts) => facts.budgets,
  });
  return { budgets: known ?? [], notes };
}

async function readKnown<T>(
  settings: Settings,
  what: string,
  read: { inStore: (store: Store) => Promise<T | undefined>; ofDaemon: (facts: StoredFacts) => T },
): Promise<{ known: T | undefined; notes: string[] }> {
  const unknown = (why: string) => ({ known: undefined, notes: [`${what} are not known: ${why}`] });
  const stored = await openStoreToRead(settings);
  if (!stored.ok) return unknown(stored.problem);
  if (!('opened' in stored)) {
    if (!stored.inUse) return { known: undefined, notes: [] };
    const facts = await factsOfDaemon(settings);
    return facts ? { known: read.ofDaemon(facts), notes: [] } : unknown(stored.note);
  }
  const { store, close } = stored.opened;
  try {
    return { known: await read.inStore(store), notes: [] };
  } finally {
    await close();
  }
}

/** Asks the daemon that has an embedded store for the stored facts; undefined if none answers. */
async function factsOfDaemon(settings: Settings, compute?: string): Promise<StoredFacts | undefined> {
  const daemon = await readDaemonFile(folderOf(settings.queue));
  if (!daemon) return undefined;
  const operator = createOperatorClient({ url: daemon.url, token: daemon.token });
  const [records, holds, freezes, status] = await Promise.all([
    recordsOf(operator, compute),
    all((query) => operator.holds(query)),
    all((query) => operator.freezes(query)),
    operator.status(),
  ]);
  if (!records || !holds || !freezes) return undefined;
  const byCompute = new Map<string, ComputeRecord>(records.flatMap((one) => Object.entries(one.records)));
  const samples = new Map(records.flatMap((one) => Object.entries(one.samples)));
  const projects = new Map(
    records.flatMap((one) => Object.keys(one.records).map((computeId) => [computeId, one.project_id] as const)),
  );
  const staged = status.ok ? [status.value.staged ?? [], status.value.staged_teams].flat() : [];
  // A daemon of an older version does not say.
  const budgets = (status.ok ? (status.value.budgets ?? []) : []).map(outlookOf);
  const stated = {
    holds: holds.map(holdOf),
    freezes: freezes.map(freezeOf),
    staged: staged.map(({ message }) => message),
  };
  // Waves are worked out from the fleet then.
  return { records: byCompute, projects, samples, budgets, readyWaves: [], ...stated };
}

async function recordsOf(operator: Operator, compute: string | undefined): Promise<RecordsDocument[] | undefined> {
  const ofOne = compute === undefined ? undefined : await all((query) => operator.records({ ...query, compute }));
  // A name of a project tells nothing of a compute, and an older daemon does not know the question.
  const isKnown = ofOne?.some(({ records }) => compute !== undefined && compute in records);
  return isKnown ? ofOne : all((query) => operator.records(query));
}

/** Every page; undefined if one can't be had, since a part of what was said would be worse than nothing. */
async function all<T>(ask: (query: PageQuery) => Promise<OperatorResult<Page<T>>>): Promise<T[] | undefined> {
  const items: T[] = [];
  let after: string | undefined;
  do {
    const page = await ask({ limit: MOST_PER_PAGE, ...(after !== undefined && { after }) });
    if (!page.ok) return undefined;
    items.push(...page.value.items);
    after = page.value.next ?? undefined;
  } while (after !== undefined);
  return items;
}

function holdOf(document: HoldDocument): Hold {
  const { project_id: projectId, compute_id: computeId, size, suspend_timeout_seconds: seconds, freeze } = document;
  return {
    ...{ projectId, computeId, ...overrideOf(document) },
    ...(size && { size: { minCu: size.min_cu, maxCu: size.max_cu } }),
    ...(seconds !== null && { suspendTimeoutSeconds: seconds }),
    ...(freeze && { freeze }),
  };
}

function freezeOf(document: FreezeDocument): Freeze {
  return { ...overrideOf(document), select: parsedOrAll(document.select), allowRaise: document.allow_raise };
}

function outlookOf(document: BudgetDocument): BudgetOutlook {
  const { budget: policy, account, month, spent, projected } = document;
  const spans = document.limiting.map(({ at, of, from, until }) => ({
    ...{ policy, account, at, of, fromMs: Date.parse(from), untilMs: Date.parse(until) },
  }));
  const instants = { fromMs: Date.parse(document.from), toMs: Date.parse(document.to) };
  return {
    policy,
    account,
    month,
    ...instants,
    knownUntilMs: Date.parse(document.known_until),
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
  const expiresAtMs = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  return { id, owner, reason, createdAtMs: Date.parse(createdAt), expiresAtMs };
}
