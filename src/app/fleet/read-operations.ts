import pLimit from 'p-limit';
import type { OperationRow, ProjectLog } from '../../domain/awake/operation-log.ts';
import type { ControlApiError, OperationsPage, OperationsReader, Project } from '../../ports/control-api.ts';
import { UNHURRIED_DEADLINE_MS } from './read-fleet.ts';

/** How many projects are read concurrently: enough to use the rate budget, few enough to stop soon. */
const CONCURRENT_PROJECTS = 8;

/** The default limit of pages of a project. About a hundred pages cover half a year in which a compute starts and suspends every five minutes. */
const MAX_PAGES = 300;

/** How far a project's operations have been read, to resume from. */
export interface ReadingState {
  /** The cursor of the next page; undefined before the first. */
  cursor: string | undefined;
  pages: number;
  /** When the oldest operation that was read was created, milliseconds since the epoch. */
  oldestMs: number | undefined;
  /** `all` once everything was read that was requested, or that the API keeps. */
  read: 'in part' | 'all' | 'failed';
  /** When the operations were read from the API, if they come from the store, milliseconds since the epoch. */
  storedAtMs?: number;
}

const UNREAD: ReadingState = { cursor: undefined, pages: 0, oldestMs: undefined, read: 'in part' };

/** The fields of an operation that the awake log needs. */
export type LoggedOperation = Omit<OperationRow, 'projectId'>;

/** Returns the operation with only the fields that the awake log needs. */
export function loggedOperation(operation: OperationRow): LoggedOperation {
  const { computeId, action, status, createdAtMs, totalDurationMs } = operation;
  return {
    action,
    status,
    createdAtMs,
    ...(computeId !== undefined && { computeId }),
    ...(totalDurationMs !== undefined && { totalDurationMs }),
  };
}

export interface OperationsProgress {
  /** Projects whose newest page, at least, was read. */
  projectsBegun: number;
  projectsDone: number;
  projects: number;
  pages: number;
  /** The estimated remaining time, in milliseconds; undefined without an estimate. */
  leftMs: number | undefined;
}

export interface ReadOperationsOptions {
  api: OperationsReader;
  projects: readonly Pick<Project, 'account' | 'projectId'>[];
  /** Operations between these instants are read, milliseconds since the epoch. */
  sinceMs: number;
  nowMs: number;
  /** Positions of an earlier reading, by project. */
  resume?: ReadonlyMap<string, ReadingState>;
  /** Called with each page, newest first within a project, and the state after it; `complete` if the API keeps nothing older. */
  onPage: (projectId: string, operations: readonly OperationRow[], complete: boolean, state: ReadingState) => void;
  onProgress?: (progress: OperationsProgress) => void;
  /** Called once, when the newest page of each project has been read, if there is more to read. */
  onNewest?: () => Promise<void>;
  /** Set for a daemon's background work; absent if a person waits. */
  priority?: 'background';
  /** Stops the reading; it can be resumed. */
  signal?: AbortSignal;
  concurrency?: number;
  maxPages?: number;
  /** Real milliseconds from an arbitrary start. */
  monotonicMs: () => number;
}

export interface OperationsRead {
  states: Map<string, ReadingState>;
  errors: ControlApiError[];
}

/**
 * Reads the operations of projects, newest first: the newest page of each project, then the next page of each, so that each project's
 * newest operations are known early. A project that can't be read has the state `failed`, and an error unless it is gone.
 */
export async function readOperations(options: ReadOperationsOptions): Promise<OperationsRead> {
  const { api, projects, sinceMs, nowMs, resume, signal, priority, onPage, onProgress, onNewest } = options;
  const { concurrency = CONCURRENT_PROJECTS, maxPages = MAX_PAGES, monotonicMs } = options;
  const startedMs = monotonicMs();
  const states = new Map(
    projects.map(({ projectId }): [string, ReadingState] => [projectId, { ...(resume?.get(projectId) ?? UNREAD) }]),
  );
  const errors: ControlApiError[] = [];
  let pages = 0;
  let isNewestReported = false;

  async function readPage(project: Pick<Project, 'account' | 'projectId'>): Promise<void> {
    const state = states.get(project.projectId);
    if (state === undefined || signal?.aborted) return;
    const answer = await api.operationsFrom(project, state.cursor, {
      deadlineMs: UNHURRIED_DEADLINE_MS,
      ...(signal && { signal }),
      ...(priority && { priority }),
    });
    if (signal?.aborted) return;
    pages += 1;
    const { account, projectId } = project;
    if (answer.ok) takePage(projectId, state, answer.value);
    else {
      state.read = 'failed';
      if (answer.error.code !== 'not_found') errors.push({ account, projectId, ...answer.error });
    }
    const elapsedMs = monotonicMs() - startedMs;
    onProgress?.(progressOf([...states.values()], { sinceMs, nowMs, pages, maxPages, elapsedMs }));
  }

  function takePage(projectId: string, state: ReadingState, { operations, cursor, stored }: OperationsPage): void {
    state.pages += 1;
    state.oldestMs = operations.at(-1)?.createdAtMs ?? state.oldestMs;
    const complete = cursor === undefined && !stored?.isCut;
    if (stored) state.storedAtMs = stored.readAtMs;
    if (cursor === undefined || (state.oldestMs ?? Number.POSITIVE_INFINITY) < sinceMs) state.read = 'all';
    state.cursor = cursor;
    onPage(projectId, operations, complete, { ...state });
  }

  let round = projects.filter(({ projectId }) => states.get(projectId)?.read !== 'all');
  while (round.length > 0 && !signal?.aborted) {
    await pLimit(concurrency).map(round, readPage);
    round = round.filter(({ projectId }) => {
      const state = states.get(projectId);
      return state?.read === 'in part' && state.pages < maxPages;
    });
    if (!isNewestReported && round.length > 0 && !signal?.aborted) await onNewest?.();
    isNewestReported = true;
  }
  return { states, errors };
}

export function addOperations(project: ProjectLog, operations: readonly LoggedOperation[]): void {
  for (const operation of operations) project.add(operation);
}

/**
 * Estimates the remaining time by the span that the pages of each project have covered so far. There is no estimate before the newest page
 * of each project was read, since the first projects say little about the others.
 */
function progressOf(
  states: readonly ReadingState[],
  limits: Pick<ReadOperationsOptions, 'sinceMs' | 'nowMs'> & { pages: number; maxPages: number; elapsedMs: number },
): OperationsProgress {
  const { sinceMs, nowMs, pages, maxPages, elapsedMs } = limits;
  const begun = states.filter((state) => state.pages > 0);
  const isAllBegun = states.every((state) => state.pages > 0 || state.read !== 'in part');
  const pagesLeft = begun.map(({ read, oldestMs, pages: pagesRead }) => {
    if (read !== 'in part' || oldestMs === undefined) return 0;
    const coveredMs = Math.max(1, nowMs - oldestMs);
    return Math.min(Math.max(0, maxPages - pagesRead), (pagesRead * Math.max(0, oldestMs - sinceMs)) / coveredMs);
  });
  const allPagesLeft = pagesLeft.reduce((sum, count) => sum + count, 0);
  return {
    projectsBegun: begun.length,
    projectsDone: states.filter(({ read }) => read !== 'in part').length,
    projects: states.length,
    pages,
    leftMs: isAllBegun ? Math.round((allPagesLeft * elapsedMs) / pages) : undefined,
  };
}
