import type { VerifiedFacts } from '../../domain/compute/account-facts.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Project, UnreadableCompute } from '../../ports/control-api.ts';
import type { BoundaryReconciles } from './at-boundary.ts';
import type { ListedBranches } from './branches.ts';
import type { HeldSpan } from './held-span.ts';

export interface CachedProject {
  project: Project;
  computes: readonly Compute[];
  /** Computes in the list that could not be parsed. They are not evaluated. */
  unreadable: readonly UnreadableCompute[];
  /** When the reading began, by the clock, milliseconds since the epoch; 0 if it must be read again. Later changes may be missing. */
  readAtMs: number;
  /** When the reading began, in monotonic time, from which its age follows. */
  readAtMonotonicMs: number;
  /** By compute, the `lastSentAtMs` of the last write that this daemon knew to have ended when the reading began. */
  includedWrites?: ReadonlyMap<string, number>;
  /**
   * True for a reading of another process, taken from the store. Invariant: it proves sleep, and something is written from it, only once a
   * list confirms it that this daemon has requested after the reading.
   */
  isShared?: true;
}

/** A complete list of an account's projects. Each project that the list showed as changed has been read since. */
export interface Survey {
  projectIds: ReadonlySet<string>;
  /** When the list was requested, in monotonic time. */
  askedAtMonotonicMs: number;
}

/** The daemon's view of the fleet, in memory only. */
export interface Fleet {
  cachedProject(projectId: string): CachedProject | undefined;
  cachedProjects(): Iterable<CachedProject>;
  cache(cachedProject: CachedProject): CachedProject;
  /**
   * Keeps the list's entry of the project, unless an entry of a later request is kept: a list of many pages may take minutes. `askedAtMonotonicMs`
   * is when the list or its page was requested, in monotonic time; now by default.
   */
  list(project: Project, askedAtMonotonicMs?: number): void;
  listed(projectId: string): Project | undefined;
  projectIds(): string[];
  forget(projectId: string): void;
  /** Keeps this daemon's own evaluation, made under the project's lease. */
  putEvaluated(evaluatedCompute: EvaluatedCompute): void;
  /** Keeps an evaluation that follows from stored records of any daemon. */
  adopt(evaluatedCompute: EvaluatedCompute): void;
  /** Returns the latest evaluation of each compute, own or adopted. */
  evaluatedComputes(): Iterable<EvaluatedCompute>;
  latestEvaluation(computeId: string): EvaluatedCompute | undefined;
  /** Returns when the latest evaluation was kept, in monotonic time; −Infinity if there is none. */
  evaluatedAtMonotonicMs(computeId: string): number;
  /** Returns this daemon's own evaluations, to compare the next ones with. */
  ownEvaluations(projectId: string): EvaluatedCompute[];
  ownEvaluation(computeId: string): EvaluatedCompute | undefined;
  /** When a change last waited for the platform, by this daemon's own evaluations, by compute id. */
  heldSpans: Map<string, HeldSpan>;
  branches: Map<string, ListedBranches>;
  /** Since when computes with an unreadable record are not listed, by compute id, milliseconds since the epoch. */
  brokenAbsentSinceMs: Map<string, number>;
  /** Since when projects are neither listed nor found (404), by project id, in monotonic time. */
  goneSinceMonotonicMs: Map<string, number>;
  /** When the last completed list of all accounts was requested, in monotonic time; −Infinity before the first. */
  listAskedAtMonotonicMs: number;
  /** When the list that was last compared with the cached projects was requested, by account, in monotonic time. */
  listComparedAtMonotonicMs: Map<string, number>;
  /** The accounts of which this daemon has not read a whole list of projects since its start. Undefined before the first list. */
  unlistedAccounts: Set<string> | undefined;
  /** Returns true once this daemon has read the whole list of projects of each account. */
  isListed(): boolean;
  /** The last survey of this daemon, by account. */
  surveys: Map<string, Survey>;
  /** Returns the milliseconds since the cached project was read; infinite if there is none. */
  ageMs(projectId: string): number;
  /** True if the list of projects shows changes of computes, by account; absent while unknown. */
  listShowsChanges: Map<string, boolean>;
  /** Accounts for which it was logged that a new timeout alone restarts computes. */
  warnedOfTimeoutRestarts: Set<string>;
  /** When this daemon last changed a project, until a list is compared with it, by project id, milliseconds since the epoch. */
  changedAtMs: Map<string, number>;
  /** When a project that could not be locked, read or changed is tried again, by project id, milliseconds since the epoch. */
  retryAtMs: Map<string, number>;
  boundaryReconciles: BoundaryReconciles;
  /** The priority of projects whose boundary reconcile waits for permits, by project id. After the wait, the reconcile decides anew. */
  waitingAtBoundary: Map<string, Priority>;
  /**
   * Notes that the list requested at this monotonic time shows the project as it was read. {@link DOUBTED} means that somebody has changed
   * or used the project since, so that it must be read again before a write.
   */
  confirm(projectId: string, atMonotonicMs: number): void;
  /** Returns the milliseconds since a list showed the project as it was read; infinite if none did. */
  confirmedAgeMs(projectId: string): number;
  /** Returns true while the cached reading, whoever made it, is recent enough to decide by. */
  isRecent(projectId: string): boolean;
  /** Returns true while the cached reading is recent enough to write from. */
  isFresh(projectId: string): boolean;
}

/** A reading older than this is read again before anything is written, in real milliseconds. */
export const FRESH_MS = 10_000;

/** A reading that the list of projects has confirmed is usable for this long, in real milliseconds. */
export const CONFIRMED_MS = 25_000;

/** The confirmation time of a project that somebody has changed or used since it was read. */
export const DOUBTED = Number.NEGATIVE_INFINITY;

/** Creates an empty view. `verified` has the accounts for which it is known whether their lists show changes; for others, ebb learns it. */
export function createFleet({ clock, verified = new Map() }: { clock: Clock; verified?: VerifiedFacts }): Fleet {
  const listed = new Map<string, { project: Project; askedAtMonotonicMs: number }>();
  const cachedProjects = new Map<string, CachedProject>();
  const own = new Map<string, EvaluatedCompute>();
  const latest = new Map<string, EvaluatedCompute>();
  const evaluatedAtMonotonicMs = new Map<string, number>();
  const confirmations = createConfirmations(clock);
  const ageOf = (atMonotonicMs = Number.NEGATIVE_INFINITY) => clock.monotonicMs() - atMonotonicMs;
  const ageMs = (projectId: string) => ageOf(cachedProjects.get(projectId)?.readAtMonotonicMs);
  const confirmedAgeMs = (projectId: string) => ageOf(confirmations.atMonotonicMs(projectId));
  const isRecent = (id: string) => ageMs(id) <= FRESH_MS && confirmations.atMonotonicMs(id) !== DOUBTED;

  const dropEvaluated = (projectId: string, kept = new Set<string>()) => {
    for (const { computeId } of cachedProjects.get(projectId)?.computes ?? [])
      if (!kept.has(computeId))
        for (const map of [own, latest, evaluatedAtMonotonicMs, fleet.heldSpans]) map.delete(computeId);
  };

  const adopt = (one: EvaluatedCompute) => {
    latest.set(one.compute.computeId, one);
    evaluatedAtMonotonicMs.set(one.compute.computeId, clock.monotonicMs());
  };

  const fleet: Fleet = {
    ...emptyNotes(verified),
    listAskedAtMonotonicMs: Number.NEGATIVE_INFINITY,
    cachedProject: (projectId) => limitReadAt(cachedProjects.get(projectId), clock),
    cachedProjects: () => [...cachedProjects.values()].map((cached) => limitReadAt(cached, clock)),
    cache(cachedProject) {
      const { project, computes } = cachedProject;
      dropEvaluated(project.projectId, new Set(computes.map(({ computeId }) => computeId)));
      cachedProjects.set(project.projectId, cachedProject);
      confirmations.forget(project.projectId);
      return cachedProject;
    },
    list(project, askedAtMonotonicMs = clock.monotonicMs()) {
      const before = listed.get(project.projectId);
      if (before === undefined || askedAtMonotonicMs >= before.askedAtMonotonicMs)
        listed.set(project.projectId, { project, askedAtMonotonicMs });
    },
    listed: (projectId) => listed.get(projectId)?.project,
    projectIds: () => [...listed.keys()],
    forget(projectId) {
      dropEvaluated(projectId);
      cachedProjects.delete(projectId);
      const { branches, goneSinceMonotonicMs, changedAtMs, retryAtMs } = fleet;
      confirmations.forget(projectId);
      for (const map of [listed, branches, goneSinceMonotonicMs, changedAtMs, retryAtMs]) map.delete(projectId);
    },
    putEvaluated(one) {
      own.set(one.compute.computeId, one);
      adopt(one);
    },
    adopt,
    evaluatedComputes: () => latest.values(),
    latestEvaluation: (computeId) => latest.get(computeId),
    evaluatedAtMonotonicMs: (computeId) => evaluatedAtMonotonicMs.get(computeId) ?? Number.NEGATIVE_INFINITY,
    ownEvaluations: (projectId) =>
      (cachedProjects.get(projectId)?.computes ?? []).flatMap(({ computeId }) => own.get(computeId) ?? []),
    ownEvaluation: (computeId) => own.get(computeId),
    ageMs,
    isListed: () => fleet.unlistedAccounts?.size === 0,
    confirm: confirmations.confirm,
    confirmedAgeMs,
    isRecent,
    isFresh: (id) => confirmedAgeMs(id) <= CONFIRMED_MS || (isRecent(id) && !cachedProjects.get(id)?.isShared),
  };
  return fleet;
}

/** Keeps when lists confirmed readings, by project id. Instants are in monotonic time. */
function createConfirmations(clock: Pick<Clock, 'monotonicMs'>) {
  const confirmed = new Map<string, number>();
  const doubted = new Map<string, number>();
  return {
    atMonotonicMs: (projectId: string) => confirmed.get(projectId),
    confirm(projectId: string, atMonotonicMs: number): void {
      if (atMonotonicMs === DOUBTED) {
        doubted.set(projectId, clock.monotonicMs());
        confirmed.set(projectId, DOUBTED);
      } else if (atMonotonicMs > (doubted.get(projectId) ?? DOUBTED)) {
        // A list that was requested before the doubt may not show what the doubt is about. A page may be newer than its list's request.
        confirmed.set(projectId, Math.max(atMonotonicMs, confirmed.get(projectId) ?? DOUBTED));
      }
    },
    forget(projectId: string): void {
      confirmed.delete(projectId);
      doubted.delete(projectId);
    },
  };
}

/** Returns the empty fields of the view that other modules fill. */
function emptyNotes(verified: VerifiedFacts) {
  return {
    heldSpans: new Map(),
    branches: new Map(),
    brokenAbsentSinceMs: new Map(),
    goneSinceMonotonicMs: new Map(),
    listShowsChanges: listsThatShowChanges(verified),
    warnedOfTimeoutRestarts: new Set<string>(),
    listComparedAtMonotonicMs: new Map(),
    unlistedAccounts: undefined,
    surveys: new Map(),
    changedAtMs: new Map(),
    retryAtMs: new Map(),
    boundaryReconciles: new Map(),
    waitingAtBoundary: new Map(),
  };
}

function listsThatShowChanges(verified: VerifiedFacts): Map<string, boolean> {
  const shows = new Map<string, boolean>();
  for (const [account, { list_updated_at: updatedAt }] of verified) {
    if (updatedAt !== undefined) shows.set(account, updatedAt === 'moves');
  }
  return shows;
}

/** Limits `readAtMs` by the monotonic age: after the clock was set back, the reading would otherwise seem newer than later changes. */
function limitReadAt<C extends CachedProject | undefined>(cached: C, clock: Clock): C {
  if (cached)
    cached.readAtMs = Math.min(cached.readAtMs, clock.now() - (clock.monotonicMs() - cached.readAtMonotonicMs));
  return cached;
}
