import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import type { Clock } from '../../ports/clock.ts';
import type {
  ApiResult,
  Branch,
  CallOptions,
  ControlApiError,
  Operation,
  OperationsPage,
  UnreadableCompute,
} from '../../ports/control-api.ts';
import { malformed } from './answers.ts';
import type { Caller } from './api-call.ts';
import { apiCall, ask, type Request } from './requests.ts';
import { branchOf, operationOf } from './translate.ts';
import {
  BranchesPage,
  ComputesAnswer,
  readBranch,
  readCompute,
  type WireCompute,
  OperationsPage as WirePage,
} from './wire.ts';

/** The path templates of the control API, as errors and metrics show them. */
export const PROJECTS = '/projects';
export const PROJECT = '/projects/{project_id}';
export const BRANCHES = '/projects/{project_id}/branches';
export const COMPUTES = '/projects/{project_id}/endpoints';
export const COMPUTE = `${COMPUTES}/{endpoint_id}`;
export const RESTART = `${COMPUTE}/restart`;
export const OPERATIONS = '/projects/{project_id}/operations';
export const ORGANIZATION_KEYS = '/organizations/{org_id}/api_keys';

const OPERATIONS_PER_PAGE = 100;
const MAX_OPERATIONS_PER_PAGE = 1_000;
const BRANCHES_PER_PAGE = 1_000;

export interface ProjectRef {
  account: string;
  projectId: string;
}

type ListClock = Pick<Clock, 'monotonicMs'>;

export interface ListSource {
  call: Caller;
  clock: ListClock;
}

/** The pages of a list. A list beyond {@link LIST_LIMITS} ends with the error `malformed`. */
export function listPages<T>(
  clock: ListClock,
  request: Request,
  fetchPage: (cursor: string | undefined) => Promise<ApiResult<Page<T>>>,
  beforeNextPage?: () => Promise<void>,
): AsyncGenerator<ApiResult<T[]>> {
  const endless = (why: string) => malformed(apiCall(request, {}), `the list has no end: ${why}`);
  return pagesOf({ fetchPage, endless, clock, beforeNextPage });
}

/** A project's operations, newest first. An operation that moves to the next page during the listing is yielded once. */
export async function* operationPages(
  { call, clock }: ListSource,
  project: ProjectRef,
  options: CallOptions,
): AsyncGenerator<ApiResult<Operation[]>> {
  const request = operationsRequest(project);
  const pages = listPages(clock, request, async (cursor) => {
    const answer = await ask(call, { ...request, query: { limit: OPERATIONS_PER_PAGE, cursor } }, WirePage, options);
    return answer.ok ? operationsIn(answer.value, project, options) : answer;
  });
  const seen = new Set<string>();
  for await (const page of pages) {
    yield page.ok ? { ok: true, value: takeUnseen(page.value, seen, ({ operationId }) => operationId) } : page;
  }
}

/** The items whose ids are not in `seen`; adds their ids. */
export function takeUnseen<T>(items: readonly T[], seen: Set<string>, idOf: (item: T) => string): T[] {
  const unseen = items.filter((item) => !seen.has(idOf(item)));
  for (const item of unseen) seen.add(idOf(item));
  return unseen;
}

/** One page of a project's operations, of the largest size, newest first. An empty page is the last, whatever its cursor. */
export async function operationsFrom(
  call: Caller,
  project: ProjectRef,
  cursor: string | undefined,
  options: CallOptions,
): Promise<ApiResult<OperationsPage<Operation>>> {
  const request = { ...operationsRequest(project), query: { limit: MAX_OPERATIONS_PER_PAGE, cursor } };
  const answer = await ask(call, request, WirePage, options);
  const page = answer.ok ? operationsIn(answer.value, project, options) : answer;
  if (!page.ok) return page;
  const { items: operations, cursor: next } = page.value;
  return { ok: true, value: { operations, cursor: operations.length === 0 || next === cursor ? undefined : next } };
}

function operationsRequest({ account, projectId }: ProjectRef): Request {
  return { account, method: 'GET', template: OPERATIONS, ids: { project_id: projectId } };
}

function operationsIn(
  { operations, pagination }: z.output<typeof WirePage>,
  project: ProjectRef,
  options: CallOptions,
): ApiResult<Page<Operation>> {
  const items = operations.map(operationOf);
  const problem = problemWithOperations(project.projectId, items);
  if (problem !== undefined) return malformed(apiCall(operationsRequest(project), options), problem);
  return { ok: true, value: { items, cursor: pagination?.cursor ?? undefined } };
}

/** A project's branches, without those that can't be parsed. */
export async function* branchPages(
  { call, clock }: ListSource,
  { account, projectId }: ProjectRef,
  options: CallOptions,
): AsyncGenerator<ApiResult<Branch[]>> {
  const request: Request = { account, method: 'GET', template: BRANCHES, ids: { project_id: projectId } };
  const pages = listPages<unknown>(clock, request, async (cursor) => {
    const query = { limit: BRANCHES_PER_PAGE, cursor };
    const answer = await ask(call, { ...request, query }, BranchesPage, options);
    if (!answer.ok) return answer;
    const { branches, pagination } = answer.value;
    const next = pagination?.next ?? pagination?.cursor ?? undefined;
    return { ok: true, value: { items: branches, cursor: next } };
  });
  const seen = new Map<string, Branch>();
  for await (const page of pages) {
    if (!page.ok) {
      yield page;
      continue;
    }
    const branches = page.value.flatMap((item) => readBranch(item) ?? []).map(branchOf);
    const problem = problemWithBranches(seen, branches);
    if (problem !== undefined) {
      yield malformed(apiCall(request, options), problem);
      return;
    }
    yield { ok: true, value: branches.filter(({ branchId }) => !seen.has(branchId)) };
    for (const branch of branches) seen.set(branch.branchId, branch);
  }
}

/** All computes of a project, parsed one by one; the API has no pages here. */
export async function computesOf(
  call: Caller,
  { account, projectId }: ProjectRef,
  options: CallOptions,
): Promise<ApiResult<{ computes: WireCompute[]; unreadable: UnreadableCompute[] }>> {
  const request: Request = { account, method: 'GET', template: COMPUTES, ids: { project_id: projectId } };
  const answer = await ask(call, request, ComputesAnswer, options);
  if (!answer.ok) return answer;
  const computes: WireCompute[] = [];
  const unreadable: UnreadableCompute[] = [];
  for (const item of answer.value.endpoints) {
    const compute = readCompute(item);
    if (compute.ok) computes.push(compute.value);
    else unreadable.push(compute.value);
  }
  const ids = [...computes.map(({ id }) => id), ...unreadable.flatMap(({ computeId }) => computeId ?? [])];
  const problem = problemWithComputes(projectId, computes, ids);
  if (problem !== undefined) return malformed(apiCall(request, options), problem);
  return { ok: true, value: { computes, unreadable } };
}

/** One page of a list, and the cursor to the next. */
export interface Page<T> {
  items: T[];
  cursor: string | undefined;
}

/** Limits for reading one list; far above any real list. */
interface ListLimits {
  pages: number;
  /** The number of items, with duplicates. */
  items: number;
  /** Real milliseconds, checked after each page. */
  ms: number;
}

export const LIST_LIMITS: ListLimits = { pages: 300, items: 100_000, ms: 300_000 };

/**
 * Yields the pages of a list, each fetched on demand. A page without items or without a cursor is the last: the API has both forms. An error,
 * a repeated cursor or a list beyond the limits ends with an error, since the list is incomplete.
 */
export async function* pagesOf<T>(options: {
  fetchPage: (cursor: string | undefined) => Promise<ApiResult<Page<T>>>;
  /** The error for an endless list. */
  endless: (why: string) => { ok: false; error: ControlApiError };
  limits?: ListLimits;
  clock: ListClock;
  beforeNextPage?: (() => Promise<void>) | undefined;
}): AsyncGenerator<ApiResult<T[]>> {
  const { fetchPage, endless, limits = LIST_LIMITS, clock, beforeNextPage } = options;
  const seen = new Set<string>();
  let cursor: string | undefined;
  let items = 0;
  let ms = 0;
  while (true) {
    const askedMs = clock.monotonicMs();
    const page = await fetchPage(cursor);
    ms += clock.monotonicMs() - askedMs;
    if (!page.ok) {
      yield page;
      return;
    }
    if (page.value.items.length === 0) return;
    yield { ok: true, value: page.value.items };
    cursor = page.value.cursor;
    if (cursor === undefined || cursor === '') return;
    items += page.value.items.length;
    const read = { pages: seen.size + 1, items, ms };
    const why = seen.has(cursor) ? 'a cursor came twice' : reachedLimit(read, limits);
    if (why !== undefined) {
      yield endless(why);
      return;
    }
    seen.add(cursor);
    await beforeNextPage?.();
  }
}

/** Describes the limit that has been reached; undefined while the next page may be fetched. */
function reachedLimit(read: ListLimits, limits: ListLimits): string | undefined {
  if (read.pages >= limits.pages) return `more than ${limits.pages} pages`;
  if (read.items >= limits.items) return `more than ${limits.items} items`;
  return read.ms >= limits.ms ? `more pages after ${limits.ms / 1000} s` : undefined;
}

// An answer that lists an object twice, or an object of another project, is rejected: there is no way to tell which state is right.

function problemWithComputes(
  projectId: string,
  computes: readonly Pick<WireCompute, 'project_id'>[],
  ids: readonly string[],
): string | undefined {
  if (computes.some((compute) => compute.project_id !== projectId))
    return 'the answer holds a compute of another project';
  return repeatedId(ids);
}

function problemWithOperations(
  projectId: string,
  operations: readonly Pick<Operation, 'operationId' | 'projectId'>[],
): string | undefined {
  if (operations.some((operation) => operation.projectId !== projectId))
    return 'the answer holds an operation of another project';
  return repeatedId(operations.map(({ operationId }) => operationId));
}

/** `seen`: the branches of earlier pages, which may be repeated unchanged. */
function problemWithBranches(seen: ReadonlyMap<string, Branch>, branches: readonly Branch[]): string | undefined {
  const changed = branches.find((branch) => !isDeepStrictEqual(seen.get(branch.branchId) ?? branch, branch));
  const repeated = repeatedId(branches.map(({ branchId }) => branchId));
  return repeated ?? (changed && `the list shows ${changed.branchId} twice, with different values`);
}

function repeatedId(ids: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const id of ids) {
    if (seen.has(id)) return `the answer lists ${id} twice`;
    seen.add(id);
  }
  return undefined;
}
