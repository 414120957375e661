import { type Compute, type ComputeSettings, settingsOf } from '../../domain/compute/compute.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, ControlApiError, Operation, Project } from '../../ports/control-api.ts';
import type { VerifyApi } from '../../ports/verify.ts';
import { AT_ONCE_MS, NOT_SHOWN_MS, type Sample, type Settled } from './judge.ts';

/** The interval of the samples that must be equal, in milliseconds. */
const REST_MS = 6_000;
const MAX_RESTS = 12;
const READ_DEADLINE_MS = 8_000;
const WRITE_DEADLINE_MS = 20_000;
/** When the compute and its operations are read, counted from an answer. A restart takes a few seconds. */
const READ_AFTER_MS = [3_000, 10_000, 20_000];
/** When the list is read, counted from an answer, until it shows the change. */
const LISTED_AFTER_MS = [3_000, AT_ONCE_MS - 1_000, 24_000, 35_000, 48_000, NOT_SHOWN_MS + 2_000];

const LAST_READ_MS = Math.max(...READ_AFTER_MS);

interface Reads {
  compute: boolean;
  operations: boolean;
  list: boolean;
}

/** True if the list shows the awaited change; `compute` is of the same sample. */
type IsListed = (listed: Project, compute: Compute | undefined) => boolean;

/** Thrown when the run may send no more requests. */
export class BoundsReached extends Error {
  override name = 'BoundsReached';
}

export interface ObservedTarget {
  account: string;
  projectId: string;
  computeId: string;
}

export interface Observer {
  compute(): Promise<Compute | undefined>;
  /** Waits for two equal samples in a row; undefined if the project doesn't come to rest. */
  settle(withList: boolean): Promise<Settled | undefined>;
  /** Samples compute and operations after an answer, and the list until `isListed`, for a minute at most. */
  follow(answeredMs: number, isListed?: IsListed): Promise<Sample[]>;
  /** Samples compute and list together until `isListed`, for a minute at most. */
  followActivity(answeredMs: number, isListed: IsListed): Promise<Sample[]>;
  update(patch: Partial<ComputeSettings>): ReturnType<VerifyApi['updateCompute']>;
  restart(): ReturnType<VerifyApi['restartCompute']>;
  wait(ms: number): Promise<void>;
}

interface ObserverOptions {
  api: VerifyApi;
  clock: Clock;
  target: ObservedTarget;
  signal: AbortSignal;
}

function createReader({ api, clock, target: { account, projectId, computeId }, signal }: ObserverOptions) {
  const reading = { deadlineMs: READ_DEADLINE_MS, signal };

  async function readCompute(): Promise<Compute | undefined> {
    const computes = allowed(await api.listComputes({ account, projectId, name: projectId }, reading));
    return computes.ok ? computes.value.computes.find((one) => one.computeId === computeId) : undefined;
  }

  async function sample(reads: Reads): Promise<Sample> {
    signal.throwIfAborted();
    const begunMs = clock.monotonicMs();
    const compute = reads.compute ? await readCompute() : undefined;
    const operations = reads.operations ? await readOperations() : undefined;
    const listed = reads.list ? await readListed() : undefined;
    signal.throwIfAborted();
    return {
      begunMs,
      endedMs: clock.monotonicMs(),
      ...(compute && { compute }),
      ...(operations && { operations }),
      ...(listed && { listed }),
    };
  }

  async function readOperations(): Promise<readonly Operation[] | undefined> {
    const page = allowed(await api.operationsFrom({ account, projectId }, undefined, reading));
    return page.ok ? page.value.operations : undefined;
  }

  async function readListed(): Promise<Project | undefined> {
    for await (const page of api.listProjects({ account, ...reading })) {
      if (!allowed(page).ok) return undefined;
      const found = page.ok ? page.value.find((one) => one.projectId === projectId) : undefined;
      if (found) return found;
    }
    return undefined;
  }

  return { readCompute, sample };
}

/** Reads and writes one compute for experiments. Rejects with {@link BoundsReached}, or with the signal's reason. */
export function createObserver(options: ObserverOptions): Observer {
  const { api, clock, signal } = options;
  const { projectId, computeId } = options.target;
  const { readCompute, sample } = createReader(options);
  const writing = { deadlineMs: WRITE_DEADLINE_MS, repeatLocked: true, signal };

  /**
   * Takes samples at these times. Once the list shows the change, only compute and operations are read until {@link LAST_READ_MS}, when the list is
   * read once more. Nothing is read after that.
   */
  async function samplesAt(
    answeredMs: number,
    readings: readonly { afterMs: number; reads: Omit<Reads, 'list'> }[],
    isListed: IsListed | undefined,
  ): Promise<Sample[]> {
    const samples: Sample[] = [];
    let isShown = isListed === undefined;
    for (const { afterMs, reads } of readings) {
      if (isShown && (!reads.compute || afterMs > LAST_READ_MS)) continue;
      await clock.wait(Math.max(0, answeredMs + afterMs - clock.monotonicMs()), signal);
      const latest = await sample({ ...reads, list: isListed !== undefined && (!isShown || afterMs === LAST_READ_MS) });
      samples.push(latest);
      isShown ||= latest.listed !== undefined && isListed?.(latest.listed, latest.compute) === true;
    }
    return samples;
  }

  return {
    compute: readCompute,
    async settle(withList) {
      let before: Sample | undefined;
      for (let tries = 0; tries < MAX_RESTS; tries += 1) {
        const latest = await sample({ compute: true, operations: true, list: withList });
        if (before && isSame(before, latest) && isAtRest(latest)) return latest;
        before = latest;
        await clock.wait(REST_MS, signal);
      }
      return undefined;
    },
    follow(answeredMs, isListed) {
      const dueMs = [...new Set([...READ_AFTER_MS, ...(isListed ? LISTED_AFTER_MS : [])])].toSorted((a, b) => a - b);
      const readings = dueMs.map((afterMs) => {
        const readsAll = READ_AFTER_MS.includes(afterMs) || afterMs >= NOT_SHOWN_MS;
        return { afterMs, reads: { compute: readsAll, operations: readsAll } };
      });
      return samplesAt(answeredMs, readings, isListed);
    },
    followActivity: (answeredMs, isListed) =>
      samplesAt(
        answeredMs,
        LISTED_AFTER_MS.map((afterMs) => ({ afterMs, reads: { compute: true, operations: false } })),
        isListed,
      ),
    update: async (patch) => allowed(await api.updateCompute(projectId, computeId, patch, writing)),
    restart: async () => allowed(await api.restartCompute(projectId, computeId, writing)),
    wait: (ms) => clock.wait(ms, signal),
  };
}

function allowed<T>(result: ApiResult<T>): ApiResult<T> {
  if (!result.ok && isOutOfBounds(result.error)) throw new BoundsReached(result.error.message);
  return result;
}

/** The guard of {@link VerifyApi} refuses with `forbidden`, and without a status. */
function isOutOfBounds({ code, status }: ControlApiError): boolean {
  return code === 'forbidden' && status === undefined;
}

function isAtRest(sample: Sample): sample is Settled {
  const { compute, operations } = sample;
  return compute?.pendingState === undefined && operations?.every(({ outcome }) => outcome !== 'pending') === true;
}

function isSame(one: Sample, other: Sample): boolean {
  return one.compute !== undefined && signature(one) === signature(other);
}

function signature({ compute, operations, listed }: Sample): string {
  const { state, updatedAtMs, startedAtMs } = compute ?? {};
  const newest = (operations ?? []).slice(0, 5).map(({ operationId, status }: Operation) => [operationId, status]);
  return JSON.stringify([compute && settingsOf(compute), state, updatedAtMs, startedAtMs, newest, listed?.updatedAtMs]);
}
