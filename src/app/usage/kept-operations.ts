/** The leader stores the operations of each project, from which the waste page and commands find savings. */
import { promisify } from 'node:util';
import { deflate, inflate } from 'node:zlib';
import { parseJson } from '../../common/result.ts';
import type { OperationRow } from '../../domain/awake/operation-log.ts';
import type { BranchRole } from '../../domain/compute/compute.ts';
import { ACCOUNT_PLANS, type AccountPlan } from '../../domain/compute/cost.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import type { ApiResult, OperationsReader, Project } from '../../ports/control-api.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { UsageStore } from '../../ports/store.ts';
import type { Branches } from '../fleet/branches.ts';
import { readOperations } from '../fleet/read-operations.ts';
import { OPERATIONS_KEY } from '../readings/reading.ts';
import type { StoredUsage } from './usage-account.ts';

/** Findings consider this many days. */
export const OPERATION_DAYS = 28;
const SPAN_MS = OPERATION_DAYS * DAY_MS;

/** The most operations that are stored per compute: a start and a suspend every five minutes are 16,128 in 28 days. */
const MAX_PER_COMPUTE = 20_000;

/** A page of the control API. The last page is stored completely: its older operations show the state of computes when the span begins. */
const PAGE = 1000;

/** Stored operations expire after this time, in milliseconds. The leader reads each project once a day. */
const LONGEST_KEPT_MS = 2 * DAY_MS;

/** Each reading begins this long before the end of the previous one, in milliseconds, since an operation may be listed late. */
const READ_AGAIN_MS = HOUR_MS;

/** The time that stored operations cover. */
export interface KeptSpan {
  /** When they were read, milliseconds since the epoch. */
  readAtMs: number;
  /** The instant of the oldest operation, milliseconds since the epoch; 0 if there is none. */
  oldestMs: number;
  /** Why older operations are missing. `complete`: there are none. `days`: findings don't need them. `most`: they would be too many. */
  end: (typeof ENDS)[number];
}
const ENDS = ['complete', 'days', 'most'] as const;

export interface KeptOperations extends KeptSpan {
  /** Newest first, with times in whole seconds. */
  operations: readonly OperationRow[];
  /** Present if the leader has read branches for the findings alone; `refused` if the key may not list them. */
  branches?: Branches | 'refused';
}

const VERSION = 1;
const HEADER_BYTES = 14;

/** The most bytes that are unpacked, so that damaged data can't fill the memory. The operations of every project have fewer. */
const MAX_BYTES = 256 * 1024 * 1024;

interface Body {
  /** Action and status. */
  k: [string, string][];
  /** Ids of computes. */
  c: string[];
  /** One column each, by operation: seconds before the previous one; index in `k`; index in `c`, or -1; duration in milliseconds, or -1. */
  o: [at: number[], kind: number[], compute: number[], durationMs: number[]];
}

/** The branches of a project; null if listing them is refused. */
type BranchesText = [id: string, name: string, roles: readonly BranchRole[]][] | null | undefined;

/** Encodes the version, the span, the branches, and the compressed operations. */
export async function encodeOperations(kept: KeptOperations): Promise<Uint8Array> {
  const { readAtMs, oldestMs, end, operations, branches } = kept;
  const kinds = new Map<string, number>();
  const computes = new Map<string, number>();
  const body: Body = { k: [], c: [], o: [[], [], [], []] };
  let beforeS = secondsOf(readAtMs);
  for (const { action, status, computeId, createdAtMs, totalDurationMs = -1 } of operations) {
    const atS = secondsOf(createdAtMs);
    body.o[0].push(beforeS - atS);
    body.o[1].push(indexIn(kinds, `${action}\n${status}`, () => body.k.push([action, status])));
    body.o[2].push(computeId === undefined ? -1 : indexIn(computes, computeId, () => body.c.push(computeId)));
    body.o[3].push(Math.round(totalDurationMs));
    beforeS = atS;
  }
  const compressed = await promisify(deflate)(JSON.stringify(body));
  const named: BranchesText =
    branches === 'refused' ? null : branches && [...branches].map(([id, { name, roles }]) => [id, name, roles]);
  const text = Buffer.from(JSON.stringify(named) ?? '');
  const bytes = new Uint8Array(HEADER_BYTES + text.length + compressed.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, VERSION);
  view.setUint8(1, ENDS.indexOf(end));
  view.setUint32(2, secondsOf(readAtMs));
  view.setUint32(6, secondsOf(oldestMs));
  view.setUint32(10, text.length);
  bytes.set(text, HEADER_BYTES);
  bytes.set(compressed, HEADER_BYTES + text.length);
  return bytes;
}

/** Decodes the span; undefined if the bytes are damaged or of another version. */
export function spanOf(bytes: Uint8Array): KeptSpan | undefined {
  if (bytes.length <= HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = ENDS[view.getUint8(1)];
  if (view.getUint8(0) !== VERSION || end === undefined) return undefined;
  return { readAtMs: 1000 * view.getUint32(2), oldestMs: 1000 * view.getUint32(6), end };
}

/** Decodes the branches; undefined if none were stored. */
export function branchesOf(bytes: Uint8Array): KeptOperations['branches'] {
  const text = Buffer.from(bytes.subarray(HEADER_BYTES, HEADER_BYTES + branchesLength(bytes))).toString();
  const named = parseJson(text) as BranchesText;
  return named === null ? 'refused' : named && new Map(named.map(([id, name, roles]) => [id, { name, roles }]));
}

function branchesLength({ buffer, byteOffset, byteLength }: Uint8Array): number {
  return new DataView(buffer, byteOffset, byteLength).getUint32(10);
}

/** Decodes the operations; undefined if the bytes are damaged or of another version. */
export async function decodeOperations(projectId: string, bytes: Uint8Array): Promise<KeptOperations | undefined> {
  const span = spanOf(bytes);
  if (!span) return undefined;
  const compressed = bytes.subarray(HEADER_BYTES + branchesLength(bytes));
  // zlib verifies a checksum, so damaged data can't be inflated.
  const text = await promisify(inflate)(compressed, { maxOutputLength: MAX_BYTES }).catch(() => '');
  const body = parseJson(text.toString()) as Body | undefined;
  if (!body) return undefined;
  const { k, c, o } = body;
  let atS = secondsOf(span.readAtMs);
  const operations = o[0].map((beforeS, index): OperationRow => {
    atS -= beforeS;
    const [action, status] = k[o[1][index] ?? 0] ?? ['', ''];
    const computeId = c[o[2][index] ?? -1];
    const totalDurationMs = o[3][index] ?? -1;
    return {
      projectId,
      action,
      status,
      createdAtMs: 1000 * atS,
      ...(computeId !== undefined && { computeId }),
      ...(totalDurationMs >= 0 && { totalDurationMs }),
    };
  });
  return { ...span, operations };
}

/** True if the operations are recent and complete since `sinceMs`, or as many as are ever stored. */
export function covers({ readAtMs, oldestMs, end }: KeptSpan, sinceMs: number, nowMs: number): boolean {
  if (nowMs - readAtMs > LONGEST_KEPT_MS) return false;
  return end === 'complete' || oldestMs < sinceMs || (end === 'most' && sinceMs >= readAtMs - SPAN_MS);
}

export interface UpdateOperationsOptions {
  api: OperationsReader;
  store: UsageStore;
  project: Project;
  /** The number of the project's computes. */
  computes: number;
  nowMs: number;
  signal: AbortSignal;
  /** Real milliseconds from an arbitrary start. */
  monotonicMs: () => number;
}

/** Reads a project's newer operations, in the background's share of the rate limit, and returns them together with the stored ones. */
export async function updateOperations(options: UpdateOperationsOptions): Promise<ApiResult<KeptOperations>> {
  const { store, project, nowMs, computes } = options;
  const bytes = (await store.usage(OPERATIONS_KEY, [project.projectId])).get(project.projectId);
  const kept = bytes && (await decodeOperations(project.projectId, bytes));
  // If the stored operations are outdated or leave a gap, all are read again.
  const usable = kept && covers(kept, nowMs - SPAN_MS, nowMs) ? kept : undefined;
  const sinceMs = usable ? lastChangeMs(usable) : nowMs - SPAN_MS;
  const maxOperations = MAX_PER_COMPUTE * Math.max(1, computes);
  const read: OperationRow[] = [];
  let isComplete = false;
  const { errors, states } = await readOperations({
    ...options,
    projects: [project],
    sinceMs,
    maxPages: maxOperations / PAGE,
    priority: 'background',
    onPage(_, operations, complete) {
      for (const operation of operations) read.push(operation);
      isComplete = complete;
    },
  });
  const [error] = errors;
  if (error) return { ok: false, error };
  const state = states.get(project.projectId)?.read;
  if (state === 'failed') return { ok: false, error: GONE };
  // If the pages read don't reach the stored operations, there is a gap: then the stored ones are dropped.
  const continued = isComplete || state !== 'all' ? undefined : usable;
  const operations = continued ? joined(read, continued.operations) : read;
  const hasAll = isComplete || continued?.end === 'complete';
  return { ok: true, value: limited({ operations, hasAll, nowMs, maxOperations }) };
}

/** The instant from which stored operations may be outdated: some had not ended, or were not listed yet. */
function lastChangeMs({ readAtMs, operations }: KeptOperations): number {
  const open = operations.filter(({ status }) => !ENDED.has(status)).map(({ createdAtMs }) => createdAtMs);
  return open.reduce((a, b) => Math.min(a, b), readAtMs - READ_AGAIN_MS);
}

const GONE = { code: 'not_found', route: 'GET /projects/{project_id}/operations', message: 'gone' } as const;

const ENDED: ReadonlySet<string> = new Set(['finished', 'skipped', 'failed', 'error', 'cancelled']);

/** Joins two readings. A page may end within a second: for that second, the stored operations count. */
function joined(read: readonly OperationRow[], known: readonly OperationRow[]): OperationRow[] {
  const oldestS = secondsOf(read.at(-1)?.createdAtMs ?? 0);
  const isNewer = ({ createdAtMs }: OperationRow) => secondsOf(createdAtMs) > oldestS;
  return [...read.filter(isNewer), ...known.filter((one) => !isNewer(one))];
}

/** Keeps whole pages of the control API, so that findings are the same as from a fresh reading. */
function limited(options: {
  operations: readonly OperationRow[];
  hasAll: boolean;
  nowMs: number;
  maxOperations: number;
}): KeptOperations {
  const { operations, hasAll, nowMs, maxOperations } = options;
  const ofDays = operations.filter(({ createdAtMs }) => createdAtMs >= nowMs - SPAN_MS).length;
  const wholePages = PAGE * Math.ceil((ofDays + 1) / PAGE);
  const kept = operations.slice(0, Math.min(wholePages, maxOperations));
  const oldestMs = kept.at(-1)?.createdAtMs ?? 0;
  const isComplete = hasAll && kept.length === operations.length;
  const endOfPart = oldestMs < nowMs - SPAN_MS ? 'days' : 'most';
  return { readAtMs: nowMs, oldestMs, end: isComplete ? 'complete' : endOfPart, operations: kept };
}

export async function storeOperations(store: UsageStore, projectId: string, kept: KeptOperations): Promise<void> {
  await store.putUsage(OPERATIONS_KEY, new Map([[projectId, await encodeOperations(kept)]]));
}

/** Reads stored operations, by project, that are usable by {@link covers}. They stay encoded, since those of a large fleet would fill the memory. */
export async function readKeptOperations(
  store: StoredUsage,
  { sinceMs, nowMs, projectIds }: { sinceMs: number; nowMs: number; projectIds?: readonly string[] },
): Promise<Map<string, Uint8Array>> {
  const all = await store.usage(OPERATIONS_KEY, projectIds ?? (await store.usageUnits(OPERATIONS_KEY)));
  const isUsable = (span: KeptSpan | undefined) => span !== undefined && covers(span, sinceMs, nowMs);
  return new Map([...all].filter(([unit, bytes]) => !unit.startsWith(PLAN) && isUsable(spanOf(bytes))));
}

/** Deletes the operations of projects that are gone. Asks `isGone` about the instant 0 first, so that only those of unlisted projects are read. */
export async function deleteOldOperations(
  store: UsageStore,
  isGone: (projectId: string, readAtMs: number) => boolean,
): Promise<void> {
  const unlisted = (await store.usageUnits(OPERATIONS_KEY)).filter((id) => isGone(id, 0) && !id.startsWith(PLAN));
  const found = await store.usage(OPERATIONS_KEY, unlisted);
  const gone = [...found].filter(([id, bytes]) => isGone(id, spanOf(bytes)?.readAtMs ?? 0)).map(([id]) => id);
  await store.deleteUsage(OPERATIONS_KEY, gone);
}

/** Returns a reader that answers with a project's kept operations, encoded or not, and asks the control API if there are none. */
export function withKeptOperations(
  kept: ReadonlyMap<string, Uint8Array | KeptOperations>,
  askLive: OperationsReader['operationsFrom'],
): OperationsReader {
  return {
    async operationsFrom(project, cursor, options) {
      const found = cursor === undefined ? kept.get(project.projectId) : undefined;
      const decoded = found instanceof Uint8Array ? await decodeOperations(project.projectId, found) : found;
      if (!decoded) return askLive(project, cursor, options);
      const { operations, readAtMs, end } = decoded;
      const stored = { readAtMs, isCut: end !== 'complete' };
      return { ok: true, value: { operations, cursor: undefined, stored } };
    },
  };
}

/* The plan of an account, for when neither settings nor usage show it. */

/** No project id begins with this. */
const PLAN = ' ';

export async function storePlan(store: UsageStore, account: string, plan: AccountPlan): Promise<void> {
  await store.putUsage(OPERATIONS_KEY, new Map([[`${PLAN}${account}`, Buffer.from(plan)]]));
}

/**
 * Returns the plan of an account: by the settings, or the last that its usage has shown, or else the last that a reading of a project has shown;
 * undefined if unknown.
 */
export async function planOfAccount(
  store: StoredUsage,
  { plans }: Pick<CostRules, 'plans'>,
  { account, inUsage }: { account: string; inUsage: AccountPlan | undefined },
): Promise<AccountPlan | undefined> {
  return plans.get(account) ?? inUsage ?? (await readPlan(store, account));
}

export async function readPlan(store: StoredUsage, account: string): Promise<AccountPlan | undefined> {
  const bytes = (await store.usage(OPERATIONS_KEY, [`${PLAN}${account}`])).get(`${PLAN}${account}`);
  const stored = bytes && Buffer.from(bytes).toString();
  return ACCOUNT_PLANS.find((plan) => plan === stored);
}

function secondsOf(ms: number): number {
  return Math.floor(ms / 1000);
}

function indexIn(known: Map<string, number>, name: string, add: () => void): number {
  const index = known.get(name) ?? known.size;
  if (index === known.size) {
    known.set(name, index);
    add();
  }
  return index;
}
