/** When computes were awake in the last two weeks: from their operations, which are read once a day. */
import { type AwakeHistory, awakeHistory, within } from '../../domain/awake/intervals.ts';
import { createOperationLog, type OperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { DAY_MS } from '../../domain/usage/known.ts';
import { HOURS_KEPT } from '../../domain/usage/stored.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, Project } from '../../ports/control-api.ts';
import { addOperations, readOperations } from '../fleet/read-operations.ts';

const SPAN_MS = (HOURS_KEPT / 24) * DAY_MS;

/** A page has a thousand operations; a project that has more is known for less time. */
const MOST_PAGES = 3;

export interface AwakeLog {
  /** Reads the operations of projects unless that was done within a day. True if something new is known. */
  refresh(projects: readonly Project[], nowMs: number, signal: AbortSignal): Promise<boolean>;
  /** As far as it is known, up to the last reading; undefined before one. */
  historyOf(compute: Compute): AwakeHistory | undefined;
}

/** A project that can't be read is not known. */
export function createAwakeLog(deps: {
  api: Pick<ControlApi, 'operationsFrom'>;
  clock: Pick<Clock, 'monotonicMs'>;
}): AwakeLog {
  const { api, clock } = deps;
  let known: { log: OperationLog; toMs: number } | undefined;
  return {
    async refresh(projects, nowMs, signal) {
      if (known !== undefined && nowMs - known.toMs < DAY_MS) return false;
      const log = createOperationLog();
      const sinceMs = nowMs - SPAN_MS;
      await readOperations({
        ...{ api, projects, sinceMs, nowMs, signal, mostPages: MOST_PAGES, priority: 'background' },
        monotonicMs: clock.monotonicMs,
        onPage(projectId, operations, complete) {
          const project = log.project(projectId);
          addOperations(project, operations);
          if (complete) project.coverFrom(sinceMs);
        },
      });
      if (signal.aborted) return false;
      known = { log, toMs: nowMs };
      return true;
    },
    historyOf(compute) {
      const project = known?.log.projects.find(({ projectId }) => projectId === compute.projectId);
      if (known === undefined || project?.fromMs === undefined) return undefined;
      const { toMs } = known;
      const history = awakeHistory(project.eventsOf(compute.computeId), {
        fromMs: project.fromMs,
        toMs,
        hint: compute,
      });
      return within(history, toMs - SPAN_MS);
    },
  };
}
