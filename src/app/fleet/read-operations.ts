import pLimit from 'p-limit';
import type { ProjectLog } from '../../domain/awake/operation-log.ts';
import type { ApiResult, ControlApi, ControlApiError, Operation, Project } from '../../ports/control-api.ts';
import { PATIENT_MS } from './read-fleet.ts';

/** Projects read concurrently: enough to use the rate budget, few enough to stop soon. */
const PROJECTS_AT_A_TIME = 8;

/** The cursor of a project's operations, to resume from. */
export interface ReadingState {
  /** The cursor of the next page; undefined before the first. */
  cursor: string | undefined;
  pages: number;
  /** The oldest instant that was seen, milliseconds since the epoch. */
  oldestMs: number | undefined;
  /** `all`: everything that is kept, or that was asked for, was read. */
  read: 'in part' | 'all' | 'failed';
}

/** The fields of an operation that the awake log needs. */
export type LoggedOperation = Pick<Operation, 'computeId' | 'action' | 'status' | 'createdAtMs' | 'totalDurationMs'>;

export function loggedPart(operation: Operation): LoggedOperation {
  const { computeId, action, status, createdAtMs, totalDurationMs } = operation;
  return {
    ...{ action, status, createdAtMs },
    ...(computeId !== undefined && { computeId }),
    ...(totalDurationMs !== undefined && { totalDurationMs }),
  };
}

export interface OperationsProgress {
  /** Projects with at least their newest page read: these have findings. */
  projectsBegun: number;
  projectsDone: number;
  projects: number;
  pages: number;
  /** An estimate of the remaining time from the progress so far, milliseconds. */
  leftMs: number | undefined;
}

export interface ReadOperationsOptions {
  api: Pick<ControlApi, 'operationsFrom'>;
  projects: readonly Pick<Project, 'account' | 'projectId'>[];
  /** Operations between these are wanted, milliseconds since the epoch. */
  sinceMs: number;
  nowMs: number;
  /** Positions of an earlier reading, by project. */
  resume?: ReadonlyMap<string, ReadingState>;
  /** Gets each page, those of one project newest first, and the state after it. `complete`: nothing older is kept. */
  onPage: (projectId: string, operations: readonly Operation[], complete: boolean, state: ReadingState) => void;
  onProgress?: (progress: OperationsProgress) => void;
  /** The newest page of each project was read, and there is more to read. */
  onNewest?: () => Promise<void>;
  /** In the background of a daemon; absent: as a person waits for it. */
  priority?: 'background';
  /** Stops the reading; it can be resumed, and what was read counts. */
  signal?: AbortSignal;
  concurrency?: number;
  /** Of each project. Absent: as many as there are. */
  mostPages?: number;
  /** Real milliseconds from an arbitrary start. */
  monotonicMs: () => number;
}

export interface OperationsRead {
  states: Map<string, ReadingState>;
  errors: ControlApiError[];
}

/**
 * Reads the operations of projects, newest first: the newest page of each project, then the next page of each that has one, so
 * that something is known of every project early. A project that can't be read is left out and an error; one that is gone is left out.
 */
export async function readOperations(options: ReadOperationsOptions): Promise<OperationsRead> {
  const { api, projects, sinceMs, nowMs, resume, signal, priority, onPage, onProgress, onNewest } = options;
  const { concurrency = PROJECTS_AT_A_TIME, mostPages = MOST_PAGES, monotonicMs } = options;
  const beganAtMs = monotonicMs();
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
      deadlineMs: PATIENT_MS,
      ...(signal && { signal }),
      ...(priority && { priority }),
    });
    if (signal?.aborted) return;
    pages += 1;
    const error = take(project.projectId, state, answer);
    if (error) errors.push({ account: project.account, ...error });
    onProgress?.(progressOf([...states.values()], { sinceMs, nowMs, pages, elapsedMs: monotonicMs() - beganAtMs }));
  }

  function take(
    projectId: string,
    state: ReadingState,
    answer: ApiResult<{ operations: Operation[]; cursor: string | undefined }>,
  ) {
    if (!answer.ok) {
      state.read = 'failed';
      return answer.error.code === 'not_found' ? undefined : answer.error;
    }
    const { operations, cursor } = answer.value;
    state.pages += 1;
    state.oldestMs = operations.at(-1)?.createdAtMs ?? state.oldestMs;
    const complete = cursor === undefined;
    if (complete || (state.oldestMs ?? Number.POSITIVE_INFINITY) < sinceMs) state.read = 'all';
    state.cursor = cursor;
    onPage(projectId, operations, complete, { ...state });
    return undefined;
  }

  const unread = projects.filter(({ projectId }) => states.get(projectId)?.read !== 'all');
  for (let round = unread; round.length > 0 && !signal?.aborted; ) {
    await pLimit(concurrency).map(round, readPage);
    round = round.filter(({ projectId }) => {
      const state = states.get(projectId);
      return state?.read === 'in part' && state.pages < mostPages;
    });
    if (!isNewestReported && round.length > 0 && !signal?.aborted) await onNewest?.();
    isNewestReported = true;
  }
  return { states, errors };
}

/** Adds a page to a project's operations. */
export function addOperations(project: ProjectLog, operations: readonly LoggedOperation[]): void {
  for (const { totalDurationMs, ...operation } of operations) {
    project.add({ ...operation, ...(totalDurationMs !== undefined && { durationMs: totalDurationMs }) });
  }
}

const UNREAD: ReadingState = { cursor: undefined, pages: 0, oldestMs: undefined, read: 'in part' };

/** Estimates the remaining time by the time that the pages of each project have covered so far. */
function progressOf(
  states: readonly ReadingState[],
  { sinceMs, nowMs, pages, elapsedMs }: { sinceMs: number; nowMs: number; pages: number; elapsedMs: number },
): OperationsProgress {
  const begun = states.filter(({ pages: ofProject }) => ofProject > 0);
  const pagesLeft = begun.map(({ read, oldestMs, pages: ofProject }) => {
    if (read !== 'in part' || oldestMs === undefined) return 0;
    const coveredMs = Math.max(1, nowMs - oldestMs);
    return Math.min(MOST_PAGES, (ofProject * Math.max(0, oldestMs - sinceMs)) / coveredMs);
  });
  const known = pagesLeft.reduce((sum, left) => sum + left, 0);
  const unbegun = states.length - begun.length;
  const left = begun.length === 0 ? undefined : unbegun * (1 + known / begun.length) + known;
  return {
    projectsBegun: begun.length,
    projectsDone: states.filter(({ read }) => read !== 'in part').length,
    projects: states.length,
    pages,
    leftMs: left === undefined || pages === 0 ? undefined : Math.round((left * elapsedMs) / pages),
  };
}

/** Half a year of a project that starts and suspends a compute every five minutes has about a hundred. */
const MOST_PAGES = 300;
