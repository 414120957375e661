import { chunksOf } from '../../common/chunks.ts';
import { mapInTurns } from '../../common/in-turns.ts';
import { asksForConnections } from '../../domain/connections/connection-samples.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { ApproveDocument, ComputeDocument, DecisionDocument } from '../../ports/documents.ts';
import {
  type ApproveRequest,
  type Caller,
  MAX_PER_PAGE,
  NOT_STAGED_HERE,
  type Operator,
  type OperatorResult,
  type Page,
  type PageQuery,
  type RecordsQuery,
  type UsageQuery,
} from '../../ports/operator.ts';
import type { FleetFilter } from '../../ports/status-page.ts';
import type { ReadingsDocument, RecordsDocument, UsageDocument } from '../../ports/stored-documents.ts';
import { readSamples } from '../connections/samples.ts';
import { frozenTest, statusOf } from '../evaluate-project/compute-status.ts';
import { readGuardStates } from '../guards/stored-states.ts';
import { COLLECTIONS_IN_ORDER, readCollection } from '../readings/read-readings.ts';
import { OPERATIONS_KEY } from '../readings/reading.ts';
import { readDetail } from '../usage/cost-detail.ts';
import { computeIdOf, listAudit } from './audit.ts';
import { ownerProblem, unconfirmed } from './check-request.ts';
import { readReports } from './daemon-reports.ts';
import { boundedLimit, computeDocument, decisionDocument, pageOf } from './documents.ts';
import { findCompute } from './find-compute.ts';
import { isNarrowed, matchingComputes } from './fleet-page.ts';
import { listFreezes, setFreeze, unfreeze } from './freezes.ts';
import { listHolds, setHold } from './holds.ts';
import { listNotifications, retryOrDropNotifications } from './notifications.ts';
import { auditOf, type DaemonView, fail, type OperatorParts } from './parts.ts';
import { release } from './release.ts';
import { restore } from './restore.ts';
import { status } from './status.ts';
import { waste } from './waste.ts';

/** Creates an operator, which carries out people's requests on a store, with or without a daemon. It rejects while the store can't be reached. */
export function createOperator(parts: OperatorParts): Operator {
  const withCaller = (caller: Caller | undefined) => (caller ? { ...parts, caller } : parts);
  return {
    status: (query) => status(parts, query),
    computes: (query) => listComputes(parts, query),
    async decisions({ compute, of, limit }) {
      if (of && isNarrowed(of) && parts.daemon) return decisionsOf({ ...parts, daemon: parts.daemon }, of, limit);
      const found = await computeIdOf(parts, compute);
      if (!found.ok) return found;
      const { value: computeId } = found;
      const entries = await parts.store.history({
        limit: boundedLimit(limit),
        ...(computeId !== undefined && { computeId }),
      });
      return { ok: true, value: entries.map(decisionDocument) };
    },
    audit: (query) => listAudit(parts, query),
    holds: (query) => listHolds(parts, query),
    hold: (request, caller) => setHold(withCaller(caller), request),
    release: (request, caller) => release(withCaller(caller), request),
    freezes: (query) => listFreezes(parts, query),
    freeze: (request, caller) => setFreeze(withCaller(caller), request),
    unfreeze: (request, caller) => unfreeze(withCaller(caller), request),
    approve: (request, caller) => approve(withCaller(caller), request),
    restore: (request, caller) => restore(withCaller(caller), request),
    records: (query) => listRecords(parts, query),
    readings: (query) => listReadings(parts, query),
    usage: (query) => listUsage(parts, query),
    costs: async () => ({ ok: true, value: { costs: (await readDetail(parts.store)) ?? null } }),
    waste: (query) => waste(parts, query),
    notifications: () => listNotifications(parts),
    retryOrDropNotifications: (request, caller) => retryOrDropNotifications(withCaller(caller), request),
  };
}

/** Returns the newest decisions about the matching computes, found among the newest {@link MAX_PER_PAGE} decisions of the fleet. */
async function decisionsOf(
  parts: OperatorParts & { daemon: DaemonView },
  filter: FleetFilter,
  limit: number,
): Promise<OperatorResult<DecisionDocument[]>> {
  const ids = new Set((await matchingComputes(parts, filter)).map(({ compute }) => compute.computeId));
  const entries = await parts.store.history({ limit: MAX_PER_PAGE });
  const matching = entries.filter(({ computeId }) => ids.has(computeId)).slice(0, limit);
  return { ok: true, value: matching.map(decisionDocument) };
}

/* Contents of the store, for commands that can't open it because a daemon has it open. */

/** Lists the records of all projects by page, or those of the project of one compute. */
async function listRecords(
  parts: OperatorParts,
  { after, limit, compute }: RecordsQuery,
): Promise<OperatorResult<Page<RecordsDocument>>> {
  const { store, daemon } = parts;
  const found = compute === undefined ? undefined : await findCompute(parts, compute);
  if (found?.ok === false) return found;
  const projectIds = found ? [found.value.projectId] : await store.projectIds();
  const remaining = projectIds.toSorted().filter((projectId) => after === undefined || projectId > after);
  const pageIds = remaining.slice(0, boundedLimit(limit));
  const items: RecordsDocument[] = [];
  const isCounted = daemon !== undefined && asksForConnections(daemon.policies().set, daemon.rules().disruption);
  const isGuarded = daemon !== undefined && policiesOfKind(daemon.policies().set.policies, 'guard').length > 0;
  const states = isGuarded ? await readGuardStates(store) : undefined;
  for (const projectId of pageIds) {
    const records = await store.records(projectId);
    const samples = await readSamples(store, isCounted ? [...records.keys()] : []);
    items.push({
      project_id: projectId,
      records: Object.fromEntries(records),
      samples: Object.fromEntries(samples),
      ...(states && { guards: Object.fromEntries([...records.keys()].map((id) => [id, states.get(id) ?? []])) }),
    });
  }
  return { ok: true, value: { items, next: (remaining.length > pageIds.length && pageIds.at(-1)) || null } };
}

/** Lists the stored readings of the fleet. A page consists of complete collections, and ends with the collection that reaches the limit. */
async function listReadings(
  { store }: OperatorParts,
  { after, limit }: PageQuery,
): Promise<OperatorResult<Page<ReadingsDocument>>> {
  const most = boundedLimit(limit);
  const items: ReadingsDocument[] = [];
  let count = 0;
  for (const name of COLLECTIONS_IN_ORDER.slice(COLLECTIONS_IN_ORDER.indexOf(after ?? '') + 1)) {
    const { collection, documents, atMs } = await readCollection(store, name);
    items.push({ collection, documents: Object.fromEntries(documents), at: isoInstant(atMs) });
    count += documents.size;
    if (count >= most) break;
  }
  const last = items.at(-1)?.collection;
  return { ok: true, value: { items, next: last === undefined || last === COLLECTIONS_IN_ORDER.at(-1) ? null : last } };
}

/** A page of usage ends with the read that reaches this size, before its encoding as base64. */
const USAGE_PAGE_BYTES = 4 * 1024 * 1024;

/** Returns how many units are read together: the operations of one project may be megabytes. */
const unitsAtOnce = (account: string) => (account === OPERATIONS_KEY ? 1 : 50);

/** Lists the stored usage of an organization, or the stored operations ({@link OPERATIONS_KEY}). */
async function listUsage(
  { store }: OperatorParts,
  { account, ...query }: UsageQuery,
): Promise<OperatorResult<Page<UsageDocument>>> {
  const { items: units, next } = pageOf(await store.usageUnits(account), (unit) => unit, query);
  const items: UsageDocument[] = [];
  let size = 0;
  let last: string | null = null;
  for (const chunk of chunksOf(units, unitsAtOnce(account))) {
    if (size >= USAGE_PAGE_BYTES) return { ok: true, value: { items, next: last } };
    last = chunk.at(-1) ?? null;
    for (const [unit, one] of await store.usage(account, chunk)) {
      items.push({ unit, bytes: Buffer.from(one).toString('base64') });
      size += one.length;
    }
  }
  return { ok: true, value: { items, next } };
}

/** Lists the computes as the daemon last evaluated them. */
export async function listComputes(
  parts: OperatorParts,
  query: PageQuery,
): Promise<OperatorResult<Page<ComputeDocument>>> {
  const { daemon, store } = parts;
  if (!daemon) return fail('unavailable', 'only a daemon knows what computes have now: start ebb run, or see ebb plan');
  const nowMs = await parts.now();
  const isFrozen = frozenTest(await store.freezes(nowMs), nowMs);
  const byPlace = ({ compute }: EvaluatedCompute) => `${compute.projectId}/${compute.computeId}`;
  const { items, next } = pageOf([...daemon.fleet.evaluatedComputes()], byPlace, query);
  const documentOf = (evaluatedCompute: EvaluatedCompute) =>
    computeDocument(evaluatedCompute, statusOf(daemon, evaluatedCompute, isFrozen));
  const documents = await mapInTurns(items, documentOf, parts.clock);
  return { ok: true, value: { items: documents, next } };
}

/** The length of a policy set's hash, and of the shortest prefix that is accepted for it, in hexadecimal digits. */
const HASH_DIGITS = { most: 64, least: 12 };

/** Returns the problem of a hash, or of a prefix of one, that a person has typed; undefined if there is none. */
function hashProblem(hash: string): string | undefined {
  const problem = `${JSON.stringify(hash.slice(0, 80))} is no hash of a policy set`;
  const hint = 'ebb status shows the hashes';
  if (!/^[0-9a-f]*$/.test(hash)) return `${problem}, which has only the digits 0-9 and a-f: ${hint}`;
  if (hash.length > HASH_DIGITS.most) return `${problem}, which has ${HASH_DIGITS.most} digits: ${hint}`;
  if (hash.length >= HASH_DIGITS.least) return undefined;
  return `${JSON.stringify(hash)} is too short: give at least ${HASH_DIGITS.least} digits of the hash of a policy set; ${hint}`;
}

async function approve(parts: OperatorParts, request: ApproveRequest): Promise<OperatorResult<ApproveDocument>> {
  const { hash, owner, preview } = request;
  const problem = ownerProblem(owner) ?? hashProblem(hash);
  if (problem !== undefined) return fail('invalid', problem);
  const staged = parts.daemon?.staged();
  if (staged && !staged.some((one) => one.hash.startsWith(hash))) {
    const hashes = staged.map((one) => one.hash).join(', ');
    const message = `no staged policy set begins with ${hash}; staged: ${hashes}`;
    return fail('not_found', staged.length > 0 ? message : NOT_STAGED_HERE);
  }
  const { disconnected: count, later } = (await impactOf(parts, hash)) ?? {};
  const value = { hash, ...(count !== undefined && { count }), ...(later !== undefined && { later }) };
  if (preview) return { ok: true, value };
  const refused = count === undefined ? undefined : unconfirmed(request, count);
  if (refused) return refused;
  const atMs = await parts.now();
  const message = `policy set ${hash} may become current`;
  const audit = await auditOf(parts, { kind: 'approve', code: 'approved', message, owner, atMs });
  await parts.store.approve({ hash, who: owner, atMs }, { audit });
  await parts.requestReconciles(await parts.store.projectIds());
  return { ok: true, value };
}

/** Returns how many computes a staged set would disconnect, by this daemon or else by the reports of daemons; undefined if none has staged it. */
async function impactOf({ daemon, store, now }: OperatorParts, hash: string) {
  if (daemon) return daemon.staged().find((one) => one.hash.startsWith(hash))?.impact;
  const sets = (await readReports(store, await now())).flatMap(({ staged_sets = [] }) => staged_sets);
  return sets.find((one) => one.hash.startsWith(hash));
}
