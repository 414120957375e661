/**
 * Judges from failed requests whether the control API is unavailable for all accounts or one, and since when, or whether single projects are at
 * fault. Instants are milliseconds of monotonic time.
 */

export interface ProjectRef {
  projectId: string;
  /** Absent where the project is known by its id only. */
  account?: string;
}

interface Evidence {
  /**
   * Notes that a request that began at `beganAtMs` has failed. Returns for whom the control API seems to be unavailable; undefined if the
   * project alone may be at fault.
   */
  fails(project: ProjectRef, beganAtMs: number): 'all' | 'account' | undefined;
  /** Notes that a request has failed that is about no single project: about the projects of `account`, or of all accounts if it is undefined. */
  otherFails(account: string | undefined, beganAtMs: number): void;
  /** Returns since when requests, or those for one account, have failed without an answer in between; undefined if the last was answered. */
  failingSinceMs(account?: string): number | undefined;
  /** True if the project has failed and was not answered since. */
  isFailing(project: ProjectRef): boolean;
  /** Notes an answer that is about no project. */
  answered(nowMs: number): void;
  answeredFor(project: ProjectRef, nowMs: number): void;
  /** Forgets the projects that have failed in an outage of all accounts, or of one: they were not at fault. */
  forgetOutage(account: string | undefined): void;
}

/** One project that fails is no evidence; a second one is, unless an answer came in between. */
export function createEvidence(): Evidence {
  const spans = new Map<string | undefined, FailingSpan>();
  const everywhere = createFailures(spanOf(undefined));
  const byAccount = new Map<string, Failures>();

  function spanOf(account: string | undefined): FailingSpan {
    const span = spans.get(account) ?? createFailingSpan();
    spans.set(account, span);
    return span;
  }

  function failuresOf(account: string): Failures {
    const failures = byAccount.get(account) ?? createFailures(spanOf(account));
    byAccount.set(account, failures);
    return failures;
  }

  return {
    fails({ projectId, account }, beganAtMs) {
      const ofAccount = account === undefined ? 0 : failuresOf(account).fails(projectId, beganAtMs);
      const ofAll = everywhere.fails(projectId, beganAtMs);
      // With several accounts, those of one say nothing about the others.
      if (ofAll > 1 && (ofAccount < 2 || byAccount.size === 1)) return 'all';
      return ofAccount > 1 ? 'account' : undefined;
    },
    otherFails: (account, beganAtMs) => spanOf(account).fails(beganAtMs),
    failingSinceMs: (account) => spanOf(account).sinceMs(),
    isFailing: ({ projectId }) => everywhere.isFailing(projectId),
    answered: everywhere.answered,
    answeredFor({ projectId, account }, nowMs) {
      everywhere.answered(nowMs);
      everywhere.forget(projectId);
      if (account === undefined) return;
      failuresOf(account).answered(nowMs);
      failuresOf(account).forget(projectId);
    },
    forgetOutage(account) {
      const failing = account === undefined ? everywhere.failing() : failuresOf(account).failing();
      for (const projectId of failing) {
        for (const failures of [everywhere, ...byAccount.values()]) failures.forget(projectId);
      }
    },
  };
}

/** The time up to now in which no request was answered. */
interface FailingSpan {
  fails(beganAtMs: number): void;
  answered(nowMs: number): void;
  sinceMs(): number | undefined;
}

function createFailingSpan(): FailingSpan {
  let sinceMs: number | undefined;
  let answeredAtMs = Number.NEGATIVE_INFINITY;
  return {
    fails(beganAtMs) {
      // A request may be tried for half a minute before it counts as failed; others may have been answered after it began.
      sinceMs = Math.min(sinceMs ?? Number.POSITIVE_INFINITY, Math.max(beganAtMs, answeredAtMs));
    },
    answered(nowMs) {
      sinceMs = undefined;
      answeredAtMs = nowMs;
    },
    sinceMs: () => sinceMs,
  };
}

interface Failures {
  /** Notes a failure. Returns how many projects have failed since the last answer, without those that were failing before it. */
  fails(projectId: string, beganAtMs: number): number;
  isFailing(projectId: string): boolean;
  /** The projects that have failed since the last answer, and were not failing before. */
  failing(): string[];
  answered(nowMs: number): void;
  forget(projectId: string): void;
}

function createFailures(span: FailingSpan): Failures {
  const failing = new Set<string>();
  /** Projects that failed while others were answered: their further failures are no evidence. */
  const atFault = new Set<string>();
  return {
    fails(projectId, beganAtMs) {
      if (!atFault.has(projectId)) {
        failing.add(projectId);
        span.fails(beganAtMs);
      }
      return failing.size;
    },
    isFailing: (projectId) => failing.has(projectId) || atFault.has(projectId),
    failing: () => [...failing],
    answered(nowMs) {
      for (const projectId of failing) atFault.add(projectId);
      failing.clear();
      span.answered(nowMs);
    },
    forget(projectId) {
      failing.delete(projectId);
      atFault.delete(projectId);
    },
  };
}
