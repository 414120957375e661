/** Judges by failed requests if the control API is unavailable, for all or for one account, or if single projects are at fault. */

export interface ProjectRef {
  projectId: string;
  /** Absent where the project is known by its id only. */
  account?: string;
}

interface Evidence {
  /** Notes a failure. Returns for whom the control API seems to be unavailable; undefined if the project alone may be at fault. */
  fails(project: ProjectRef): 'all' | 'account' | undefined;
  /** True if the project has failed and was not answered since. */
  isFailing(project: ProjectRef): boolean;
  /** Notes an answer that is about no project. */
  answered(): void;
  answeredFor(project: ProjectRef): void;
  /** Forgets the projects that have failed in an outage of all, or of one account: they were not at fault. */
  forgetOutage(account: string | undefined): void;
}

/** One project that fails is no evidence; a second one is, unless an answer came in between. */
export function createEvidence(): Evidence {
  const everywhere = createFailures();
  const byAccount = new Map<string, Failures>();

  function failuresOf(account: string): Failures {
    const failures = byAccount.get(account) ?? createFailures();
    byAccount.set(account, failures);
    return failures;
  }

  return {
    fails({ projectId, account }) {
      const ofAccount = account === undefined ? 0 : failuresOf(account).fails(projectId);
      const ofAll = everywhere.fails(projectId);
      // With several accounts, those of one say nothing about the others.
      if (ofAll > 1 && (ofAccount < 2 || byAccount.size === 1)) return 'all';
      return ofAccount > 1 ? 'account' : undefined;
    },
    isFailing: ({ projectId }) => everywhere.isFailing(projectId),
    answered: everywhere.answered,
    answeredFor({ projectId, account }) {
      everywhere.answered();
      everywhere.forget(projectId);
      if (account === undefined) return;
      failuresOf(account).answered();
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

interface Failures {
  /** Returns how many projects have failed that were not failing before the last answer. */
  fails(projectId: string): number;
  isFailing(projectId: string): boolean;
  /** The projects that have failed since the last answer, and were not failing before. */
  failing(): string[];
  answered(): void;
  forget(projectId: string): void;
}

function createFailures(): Failures {
  const failing = new Set<string>();
  /** Projects that failed while others were answered: their further failures are no evidence. */
  const alone = new Set<string>();
  return {
    fails(projectId) {
      if (!alone.has(projectId)) failing.add(projectId);
      return failing.size;
    },
    isFailing: (projectId) => failing.has(projectId) || alone.has(projectId),
    failing: () => [...failing],
    answered() {
      for (const projectId of failing) alone.add(projectId);
      failing.clear();
    },
    forget(projectId) {
      failing.delete(projectId);
      alone.delete(projectId);
    },
  };
}
