import { MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import {
  type ControlApi,
  type ControlApiError,
  type ControlApiErrorCode,
  isUnavailable,
  type UnreadableCompute,
} from '../../ports/control-api.ts';
import type { RefusedProjectDocument } from '../../ports/documents.ts';
import type { Log, Telemetry } from '../../ports/telemetry.ts';
import { createEvidence, type ProjectRef } from './outage-evidence.ts';

/** The kind of a request. A refusal ends only with an answer to the same kind: changes of a project may be forbidden while readings are allowed. */
type RequestKind = RefusedProjectDocument['request'];

/** A project whose requests of one kind are refused. Instants are milliseconds since the epoch. */
export interface Refusal {
  projectId: string;
  kind: RequestKind;
  /** The message of the latest refusal. */
  message: string;
  sinceMs: number;
  lastMs: number;
}

interface EndedOutage {
  message: string;
  atMs: number;
  atMonotonicMs: number;
}

/** Reports each outage once, and its end once. */
export interface Outages {
  /** Reports an outage of a dependency of the daemon, and counts it. `beganAtMonotonicMs`: when the request began that has failed. */
  down(dependency: string, message: string, beganAtMonotonicMs?: number): void;
  up(dependency: string): void;
  /** The current outages, with the first message of each. */
  current(): ReadonlyMap<string, string>;
  /** Since when a dependency has been away, or available again, milliseconds since the epoch; undefined if it never was away. */
  sinceMs(dependency: string): number | undefined;
  /** The last outage of each dependency that has ended: its first message and its end, milliseconds since the epoch. */
  ended(): ReadonlyMap<string, EndedOutage>;
  /** True if a failed request began before the end of an outage of the project's account, or of all: it says nothing about the present. */
  beganInOutage(project: Pick<ProjectRef, 'account'> | undefined, error: ControlApiError): boolean;
  /**
   * A request about a project failed as if the control API were down. Once a second project fails before an answer arrives, the API counts as
   * down. If both are of one of several accounts, it counts as down for this account, and only answers for this account matter. A project that
   * kept failing while others were answered is no evidence.
   */
  projectFails(project: ProjectRef, message: string, kind: RequestKind, beganAtMonotonicMs?: number): void;
  /** A write failed in the same way. This may show an outage, but no project counts as refused: the write is logged and tried again elsewhere. */
  writeFails(project: ProjectRef, message: string, beganAtMonotonicMs?: number): void;
  /** Notes that a request about one project was refused, while others are answered. */
  projectRefused(projectId: string, message: string, kind: RequestKind): void;
  /** The projects that are refused now. */
  refused(): readonly Refusal[];
  projectAnswers(project: ProjectRef, kind: RequestKind): void;
  /** Reports the unreadable computes of a project; those that are not in the list count as readable. */
  computesUnreadable(projectId: string, computes: readonly UnreadableCompute[]): void;
  /** From now on reports no outage: a daemon that stops gives up its requests. */
  end(): void;
}

/** The name under which the control API counts as a dependency. */
export const CONTROL_API = 'control API';

/** The name under which the control API counts as a dependency for one account, while other accounts are answered. */
export function controlApiFor(account: string): string {
  return `${CONTROL_API} for ${account}`;
}

/** Returns false for an outage of another account, or of another account's list of projects. */
export function concernsAccount(dependency: string, account: string): boolean {
  return [controlApiFor, listOf].every(
    (nameFor) => dependency === nameFor(account) || !dependency.startsWith(nameFor('')),
  );
}

/** An outage that only writes have shown also ends with a reading, if no write has failed for this long, in milliseconds. */
const WRITES_QUIET_MS = 5 * MINUTE_MS;

type OutageClock = Pick<Clock, 'now' | 'monotonicMs'>;

export function createOutages({ log, metrics }: Telemetry, clock: OutageClock): Outages {
  const dependencies = createDependencies({ log, metrics }, clock);
  const refusals = createRefusals({ log, metrics }, clock);
  const evidence = createEvidence();
  const namesFor = ({ account }: Pick<ProjectRef, 'account'> = {}) =>
    account === undefined ? [CONTROL_API] : [CONTROL_API, controlApiFor(account)];

  /** Ends the outages of all accounts and of this one, after an answer to a request of this kind. Projects that failed in them were not at fault. */
  function endOutages({ account }: Pick<ProjectRef, 'account'>, kind: RequestKind): void {
    if (dependencies.goUp(CONTROL_API, kind)) evidence.forgetOutage(undefined);
    if (account !== undefined && dependencies.goUp(controlApiFor(account), kind)) evidence.forgetOutage(account);
  }

  function fails(
    project: ProjectRef,
    message: string,
    kind: RequestKind,
    beganAtMonotonicMs = clock.monotonicMs(),
  ): void {
    const { account } = project;
    // If the account's list of projects already fails, that failure belongs to the outage.
    const listBeganAtMonotonicMs = account === undefined ? undefined : dependencies.beganAtMonotonicMs(listOf(account));
    if (listBeganAtMonotonicMs !== undefined) evidence.otherFails(account, listBeganAtMonotonicMs);
    const scope = evidence.fails(project, beganAtMonotonicMs);
    if (scope === 'all' || dependencies.down.has(CONTROL_API))
      dependencies.goDown(CONTROL_API, message, { kind, sinceMonotonicMs: evidence.failingSinceMs() });
    else if (scope === 'account' && account !== undefined)
      dependencies.goDown(controlApiFor(account), message, {
        kind,
        sinceMonotonicMs: evidence.failingSinceMs(account),
      });
  }

  return {
    down(dependency, message, beganAtMonotonicMs = clock.monotonicMs()) {
      if (dependency !== CONTROL_API)
        dependencies.goDown(dependency, message, { sinceMonotonicMs: beganAtMonotonicMs });
      else {
        evidence.otherFails(undefined, beganAtMonotonicMs);
        dependencies.goDown(dependency, message, { sinceMonotonicMs: evidence.failingSinceMs() });
      }
    },
    up(dependency) {
      if (dependency !== CONTROL_API) dependencies.goUp(dependency, 'read');
      else {
        endOutages({}, 'read');
        evidence.answered(clock.monotonicMs());
      }
    },
    current: () => dependencies.down,
    sinceMs: dependencies.sinceMs,
    ended: () => dependencies.ended,
    beganInOutage(project, { beganAtMonotonicMs = Number.POSITIVE_INFINITY }) {
      const ends = namesFor(project).flatMap((name) => dependencies.ended.get(name)?.atMonotonicMs ?? []);
      return ends.some((atMonotonicMs) => beganAtMonotonicMs < atMonotonicMs);
    },
    projectFails(project, message, kind, beganAtMonotonicMs) {
      // The first failure may be the beginning of an outage, which a failure of another project would show.
      const wasFailing = evidence.isFailing(project);
      fails(project, message, kind, beganAtMonotonicMs);
      const isDown = namesFor(project).some((name) => dependencies.down.has(name));
      if (wasFailing && !isDown) refusals.refuse(project.projectId, message, kind);
    },
    writeFails(project, message, beganAtMonotonicMs) {
      dependencies.noteFailedWrite();
      fails(project, message, 'write', beganAtMonotonicMs);
    },
    projectRefused: refusals.refuse,
    refused: () => [...refusals.all.values()],
    projectAnswers(project, kind) {
      endOutages(project, kind);
      evidence.answeredFor(project, clock.monotonicMs());
      refusals.end(project.projectId, kind);
    },
    computesUnreadable: createUnreadableReports(log),
    end: dependencies.end,
  };
}

/** The dependencies that are not available, and the kind of request that has shown it. */
function createDependencies({ log, metrics }: Telemetry, clock: OutageClock) {
  const down = new Map<string, string>();
  const shownBy = new Map<string, RequestKind>();
  /** When each current outage began, in monotonic time. */
  const began = new Map<string, number>();
  const ended = new Map<string, EndedOutage>();
  let writeFailedAtMs = Number.NEGATIVE_INFINITY;
  let isEnded = false;
  return {
    down,
    ended,
    beganAtMonotonicMs: (dependency: string) => began.get(dependency),
    sinceMs(dependency: string): number | undefined {
      const beganAtMonotonicMs = began.get(dependency);
      if (beganAtMonotonicMs === undefined) return ended.get(dependency)?.atMs;
      return clock.now() - (clock.monotonicMs() - beganAtMonotonicMs);
    },
    goDown(
      dependency: string,
      message: string,
      shown: { kind?: RequestKind; sinceMonotonicMs: number | undefined },
    ): void {
      const { kind = 'read', sinceMonotonicMs = clock.monotonicMs() } = shown;
      if (isEnded) return;
      if (kind !== 'write' || !down.has(dependency)) shownBy.set(dependency, kind);
      // Of the requests that fail in an outage, the first to begin need not be the first to be given up.
      began.set(dependency, Math.min(sinceMonotonicMs, began.get(dependency) ?? sinceMonotonicMs));
      if (down.has(dependency)) return;
      down.set(dependency, message);
      metrics.increment('ebb_outages_total', { dependency });
      log.error({ event: 'ebb.outage', dependency }, `${dependency} is not available: ${message}; carrying on`);
    },
    /** Returns true if this ends an outage. */
    goUp(dependency: string, kind: RequestKind): boolean {
      const message = down.get(dependency);
      if (message === undefined) return false;
      const mayStillFail = kind !== 'write' && clock.now() - writeFailedAtMs < WRITES_QUIET_MS;
      if (mayStillFail && shownBy.get(dependency) === 'write') return false;
      down.delete(dependency);
      began.delete(dependency);
      ended.set(dependency, { message, atMs: clock.now(), atMonotonicMs: clock.monotonicMs() });
      log.info({ event: 'ebb.recovered', dependency }, `${dependency} is available again`);
      return true;
    },
    noteFailedWrite(): void {
      writeFailedAtMs = clock.now();
    },
    end(): void {
      isEnded = true;
    },
  };
}

/** The refused projects, by kind of request. */
function createRefusals({ log, metrics }: Telemetry, clock: Pick<Clock, 'now'>) {
  const all = new Map<string, Refusal>();
  return {
    all,
    refuse(projectId: string, message: string, kind: RequestKind): void {
      const key = `${projectId} ${kind}`;
      const nowMs = clock.now();
      const before = all.get(key);
      all.set(key, { projectId, kind, message, sinceMs: before?.sinceMs ?? nowMs, lastMs: nowMs });
      if (before) return;
      metrics.increment('ebb_projects_refused_total', {});
      log.warn({ event: 'ebb.project_refused', project: projectId }, `${projectId} can't be managed: ${message}`);
    },
    end(projectId: string, kind: RequestKind): void {
      if (!all.delete(`${projectId} ${kind}`) || [...all.values()].some((one) => one.projectId === projectId)) return;
      log.info({ event: 'ebb.project_recovered', project: projectId }, `${projectId} can be managed again`);
    },
  };
}

function createUnreadableReports(log: Log): Outages['computesUnreadable'] {
  const unreadable = new Map<string, ReadonlySet<string>>();
  return (projectId, computes) => {
    const before = unreadable.get(projectId) ?? new Set();
    const current = new Map(computes.map(({ computeId = 'a compute', message }) => [computeId, message]));
    if (current.size > 0) unreadable.set(projectId, new Set(current.keys()));
    else unreadable.delete(projectId);
    for (const [compute, message] of current) {
      if (before.has(compute)) continue;
      const fields = { event: 'ebb.compute_unreadable', project: projectId, compute };
      log.warn(fields, `${compute} of ${projectId} can't be managed, and nothing is written to it: ${message}`);
    }
    for (const compute of before) {
      if (current.has(compute)) continue;
      const fields = { event: 'ebb.compute_readable', project: projectId, compute };
      log.info(fields, `${compute} of ${projectId} can be managed again, or is gone`);
    }
  };
}

/** Errors that end by themselves. Others concern the whole service, or one project, such as an invalid answer. */
const TEMPORARY_ERRORS: ReadonlySet<ControlApiErrorCode> = new Set(['throttled', 'locked']);

export interface OutageDeps {
  outages: Outages;
}

/** Reports an error of the control API: the service is unavailable, or it refuses one project. */
export function reportApiError(
  { outages }: OutageDeps,
  project: ProjectRef | undefined,
  error: ControlApiError,
  kind: RequestKind = 'read',
): void {
  if (isNoEvidence(outages, project, error)) return;
  if (project === undefined) outages.down(CONTROL_API, describe(error), error.beganAtMonotonicMs);
  else if (isUnavailable(error)) outages.projectFails(project, describe(error), kind, error.beganAtMonotonicMs);
  else outages.projectRefused(project.projectId, describe(error), kind);
}

/** Errors of a write that count as a refusal of the project, since no later reading cures them. Others are about the compute, or temporary. */
const REFUSALS: ReadonlySet<ControlApiErrorCode> = new Set(['forbidden', 'not_found']);

/** Reports the error of a single write, which is not tried again at once as a reading is. */
export function reportWriteError({ outages }: OutageDeps, project: ProjectRef, error: ControlApiError): void {
  if (isNoEvidence(outages, project, error)) return;
  if (isUnavailable(error)) outages.writeFails(project, describe(error), error.beganAtMonotonicMs);
  else if (REFUSALS.has(error.code)) outages.projectRefused(project.projectId, describe(error), 'write');
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
  const isAnswered = projects.length > 0 || failures.size < accounts.length;
  if (isAnswered) outages.up(CONTROL_API);
  for (const account of accounts) {
    const error = failures.get(account);
    if (error === undefined) outages.up(listOf(account));
    else if (!isAnswered) reportApiError(deps, undefined, error);
    else if (!isNoEvidence(outages, { account }, error))
      outages.down(listOf(account), describe(error), error.beganAtMonotonicMs);
  }
}

/** The name under which the list of an account's projects counts as a dependency. */
export function listOf(account: string): string {
  return `project list of ${account}`;
}

/** True for an outage of the control API, for all or for one account, or of an account's list of projects. */
export function isOfControlApi(dependency: string): boolean {
  return dependency.startsWith(CONTROL_API) || dependency.startsWith(listOf(''));
}

/** True for an error that says nothing about the present: it ends by itself, nothing was sent, or it belongs to an outage that is over. */
function isNoEvidence(
  outages: Outages,
  project: Pick<ProjectRef, 'account'> | undefined,
  error: ControlApiError,
): boolean {
  // The client of the control API reports refused keys, and readiness shows them.
  if (error.code === 'unauthorised' || TEMPORARY_ERRORS.has(error.code) || error.othersFail === true) return true;
  return isUnavailable(error) && outages.beganInOutage(project, error);
}

function describe({ route, status, code, message }: ControlApiError): string {
  return `${route}: ${status ?? code}: ${message}`;
}
