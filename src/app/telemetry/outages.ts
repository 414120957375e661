import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, ControlApiError, ControlApiErrorCode, UnreadableCompute } from '../../ports/control-api.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** Reports each outage once, and its end once. */
export interface Outages {
  /** Reports an outage of a dependency of the daemon, and counts it. */
  down(dependency: string, message: string): void;
  up(dependency: string): void;
  /** The current outages, with the first message of each. */
  current(): ReadonlyMap<string, string>;
  /** The last outage of each dependency that has ended: its first message and its end, milliseconds since the epoch. */
  ended(): ReadonlyMap<string, { message: string; atMs: number }>;
  /**
   * A project failed as if the control API were down. It counts as down once another project fails, too, without an answer in between. A
   * project that kept failing while others were answered is no evidence.
   */
  projectFails(projectId: string, message: string): void;
  /** A write failed in the same way. It is tried again and has its own log lines, so it makes an outage, but refuses no project. */
  writeFails(projectId: string, message: string): void;
  /** One project fails while others work. */
  projectRefused(projectId: string, message: string): void;
  projectAnswers(projectId: string): void;
  /** Reports the unreadable computes of a project; those that are not in the list count as readable. */
  computesUnreadable(projectId: string, computes: readonly UnreadableCompute[]): void;
}

/** The name under which the control API counts as a dependency. */
export const CONTROL_API = 'control API';

export function createOutages({ log, metrics }: Telemetry, clock: Pick<Clock, 'now'>): Outages {
  const down = new Map<string, string>();
  const ended = new Map<string, { message: string; atMs: number }>();
  const refused = new Set<string>();
  const unreadable = new Map<string, ReadonlySet<string>>();
  /** Projects that have failed since the last answer of the control API, and those that were failing when it answered for others. */
  const failing = new Set<string>();
  const failingAlone = new Set<string>();

  function goDown(dependency: string, message: string): void {
    if (down.has(dependency)) return;
    down.set(dependency, message);
    metrics.increment('ebb_outages_total', { dependency });
    log.error({ event: 'ebb.outage', dependency }, `${dependency} is not available: ${message}; carrying on`);
  }

  function refuse(projectId: string, message: string): void {
    if (refused.has(projectId)) return;
    refused.add(projectId);
    metrics.increment('ebb_projects_refused_total', {});
    log.warn({ event: 'ebb.project_refused', project: projectId }, `${projectId} can't be managed: ${message}`);
  }

  function writeFails(projectId: string, message: string): void {
    if (!failingAlone.has(projectId)) failing.add(projectId);
    if (failing.size > 1) goDown(CONTROL_API, message);
  }

  return {
    down: goDown,
    up(dependency) {
      if (dependency === CONTROL_API) {
        for (const projectId of failing) failingAlone.add(projectId);
        failing.clear();
      }
      const message = down.get(dependency);
      if (message === undefined) return;
      down.delete(dependency);
      ended.set(dependency, { message, atMs: clock.now() });
      log.info({ event: 'ebb.recovered', dependency }, `${dependency} is available again`);
    },
    current: () => down,
    ended: () => ended,
    projectFails(projectId, message) {
      writeFails(projectId, message);
      if (!down.has(CONTROL_API)) refuse(projectId, message);
    },
    writeFails,
    projectRefused: refuse,
    projectAnswers(projectId) {
      failing.delete(projectId);
      failingAlone.delete(projectId);
      if (!refused.delete(projectId)) return;
      log.info({ event: 'ebb.project_recovered', project: projectId }, `${projectId} can be managed again`);
    },
    computesUnreadable(projectId, computes) {
      const before = unreadable.get(projectId) ?? new Set();
      const now = new Map(computes.map(({ computeId = 'a compute', message }) => [computeId, message]));
      if (now.size > 0) unreadable.set(projectId, new Set(now.keys()));
      else unreadable.delete(projectId);
      for (const [compute, message] of now) {
        if (before.has(compute)) continue;
        const fields = { event: 'ebb.compute_unreadable', project: projectId, compute };
        log.warn(fields, `${compute} of ${projectId} can't be managed, and nothing is written to it: ${message}`);
      }
      for (const compute of before) {
        if (now.has(compute)) continue;
        const fields = { event: 'ebb.compute_readable', project: projectId, compute };
        log.info(fields, `${compute} of ${projectId} can be managed again, or is gone`);
      }
    },
  };
}

/** Errors of the whole service, and temporary ones. All others, such as an invalid answer, concern one project. */
const SERVICE_ERRORS: ReadonlySet<ControlApiErrorCode> = new Set(['unavailable', 'timeout']);
const TEMPORARY_ERRORS: ReadonlySet<ControlApiErrorCode> = new Set(['throttled', 'locked']);

export interface OutageDeps {
  outages: Outages;
}

/** Reports an error of the control API: the service is away, or it refuses one project. */
export function reportApiError({ outages }: OutageDeps, projectId: string | undefined, error: ControlApiError): void {
  if (isReportedElsewhere(error)) return;
  if (projectId === undefined) outages.down(CONTROL_API, describe(error));
  else if (SERVICE_ERRORS.has(error.code)) outages.projectFails(projectId, describe(error));
  else outages.projectRefused(projectId, describe(error));
}

/** Refusals of what is asked, which the next reading won't cure. Other errors of a write are about its compute, or temporary. */
const REFUSALS: ReadonlySet<ControlApiErrorCode> = new Set(['forbidden', 'not_found']);

/** Reports the error of a single write, which is not tried again at once as a reading is. */
export function reportWriteError({ outages }: OutageDeps, projectId: string, error: ControlApiError): void {
  if (SERVICE_ERRORS.has(error.code)) outages.writeFails(projectId, describe(error));
  else if (REFUSALS.has(error.code)) outages.projectRefused(projectId, describe(error));
}

export interface ReportListingDeps extends OutageDeps {
  api: ControlApi;
}

/** Reports the result of listing the projects of all accounts, or of account `only`. */
export function reportListing(
  deps: ReportListingDeps,
  { projects, failures }: { projects: readonly unknown[]; failures: ReadonlyMap<string, ControlApiError> },
  only?: string,
): void {
  const { api, outages } = deps;
  const accounts = only === undefined ? api.accountStatus().map(({ account }) => account) : [only];
  const answered = projects.length > 0 || failures.size < accounts.length;
  if (answered) outages.up(CONTROL_API);
  for (const account of accounts) {
    const error = failures.get(account);
    if (error === undefined) outages.up(listOf(account));
    else if (!answered) reportApiError(deps, undefined, error);
    else if (!isReportedElsewhere(error)) outages.down(listOf(account), describe(error));
  }
}

/** The name under which the list of an account's projects counts as a dependency. */
export function listOf(account: string): string {
  return `project list of ${account}`;
}

/** The client of the control API reports refused keys, and readiness shows them. */
function isReportedElsewhere({ code }: ControlApiError): boolean {
  return code === 'unauthorised' || TEMPORARY_ERRORS.has(code);
}

function describe({ route, status, code, message }: ControlApiError): string {
  return `${route}: ${status ?? code}: ${message}`;
}
