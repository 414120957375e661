import type { VerifiedFacts } from '../../domain/compute/account-facts.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Project, UnreadableCompute } from '../../ports/control-api.ts';
import type { BoundaryReconciles } from './at-boundary.ts';
import type { KnownBranches } from './branches.ts';

/** The last reading of a project's computes. */
export interface CachedProject {
  project: Project;
  computes: readonly Compute[];
  /** Computes in the list that could not be parsed. They are not evaluated. */
  unreadable: readonly UnreadableCompute[];
  /** When the reading began: by the clock (it lacks changes sent later), and by monotonic time (for its age). */
  readAtMs: number;
  readAtMonotonicMs: number;
  /** By compute, the last write that had ended when the reading began, where this daemon knew it: `lastSentAtMs` of the record. */
  includedWrites?: ReadonlyMap<string, number>;
}

/** A complete list of an account's projects, after which each project that it shows as changed was read. */
export interface Survey {
  projectIds: ReadonlySet<string>;
  /** When the list was requested, on the clock's monotonic time. */
  askedAtMonotonicMs: number;
}

/** The newest evaluation of a compute, by any daemon. */
interface KnownEvaluation {
  evaluatedCompute: EvaluatedCompute;
  /** On the clock's monotonic time. */
  atMonotonicMs: number;
}

/** The daemon's view of the fleet, in memory only. */
export interface Fleet {
  cachedProject(projectId: string): CachedProject | undefined;
  cachedProjects(): Iterable<CachedProject>;
  /** Caches a reading. */
  see(cachedProject: CachedProject): CachedProject;
  /** Keeps the list's entry of the project, to compare the next list with it. */
  list(project: Project): void;
  listed(projectId: string): Project | undefined;
  projectIds(): string[];
  forget(projectId: string): void;
  /** Keeps this daemon's own evaluation, made under the project's lease. */
  putEvaluated(evaluatedCompute: EvaluatedCompute): void;
  /** Keeps an evaluation that follows from stored records of any daemon. */
  adopt(evaluatedCompute: EvaluatedCompute): void;
  /** Returns the newest evaluation of each compute, own or adopted. */
  evaluatedComputes(): Iterable<EvaluatedCompute>;
  known(computeId: string): KnownEvaluation | undefined;
  /** Returns this daemon's own evaluations, to compare the next ones with. */
  evaluatedOf(projectId: string): EvaluatedCompute[];
  evaluatedCompute(computeId: string): EvaluatedCompute | undefined;
  /** The branches of each project whose branches were asked for. */
  branches: Map<string, KnownBranches>;
  /** Since when computes with an unreadable record are not listed, by compute id, milliseconds since the epoch. */
  brokenAbsentSinceMs: Map<string, number>;
  /** Since when projects are neither listed nor found (404), by project id, in monotonic time. */
  goneSinceMonotonicMs: Map<string, number>;
  /** Start of the last list of all projects, in monotonic time; −Infinity before the first. */
  listAskedAtMonotonicMs: number;
  /** When the last list that was compared was requested, by account, in monotonic time. */
  listTakenAtMonotonicMs: Map<string, number>;
  /** By account, the last survey of this daemon. */
  surveys: Map<string, Survey>;
  /** Returns the milliseconds since the cached project was read; infinite if there is none. */
  ageMs(projectId: string): number;
  /** True if the list of projects shows changes of computes, by account; absent while unknown. */
  listShowsChanges: Map<string, boolean>;
  /** Accounts of which was warned that a new timeout alone restarts a compute. */
  timeoutsRestart: Set<string>;
  /** When this daemon last changed a project, until a list is compared with it, by project id, milliseconds since the epoch. */
  changedAtMs: Map<string, number>;
  /** This daemon's boundary reconciles that are not done. */
  boundaryReconciles: BoundaryReconciles;
  /**
   * Notes that the list requested at this monotonic time shows the project as it was read. {@link DOUBTED} means that somebody has changed
   * or used the project since, so that it must be read again before a write.
   */
  confirm(projectId: string, atMonotonicMs: number): void;
  /** Returns the milliseconds since a list showed the project as it was read; infinite if none did. */
  confirmedAgeMs(projectId: string): number;
  /** Returns true while the cached reading is recent enough to write from. */
  isFresh(projectId: string): boolean;
}

/** A reading older than this is read again before anything is written, in real milliseconds. */
export const FRESH_MS = 10_000;

/** A reading that the list of projects has confirmed is usable for this long, in real milliseconds. */
export const CONFIRMED_MS = 25_000;

/** The confirmation time of a project that somebody has changed or used since it was read. */
export const DOUBTED = Number.NEGATIVE_INFINITY;

/** What is `verified` of the list of projects need not be learned. */
export function createFleet({ clock, verified = new Map() }: { clock: Clock; verified?: VerifiedFacts }): Fleet {
  const listed = new Map<string, Project>();
  const cachedProjects = new Map<string, CachedProject>();
  const own = new Map<string, EvaluatedCompute>();
  const known = new Map<string, KnownEvaluation>();
  const branches: Fleet['branches'] = new Map();
  const confirmed = new Map<string, number>();
  const changedAtMs = new Map<string, number>();
  const goneSinceMonotonicMs = new Map<string, number>();
  const ageOf = (atMonotonicMs: number | undefined) =>
    atMonotonicMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() - atMonotonicMs;
  const ageMs = (projectId: string) => ageOf(cachedProjects.get(projectId)?.readAtMonotonicMs);
  const confirmedAgeMs = (projectId: string) => ageOf(confirmed.get(projectId));

  const dropEvaluated = (projectId: string, kept: ReadonlySet<string>) => {
    for (const { computeId } of cachedProjects.get(projectId)?.computes ?? []) {
      if (kept.has(computeId)) continue;
      own.delete(computeId);
      known.delete(computeId);
    }
  };

  const adopt = (evaluatedCompute: EvaluatedCompute) =>
    void known.set(evaluatedCompute.compute.computeId, { evaluatedCompute, atMonotonicMs: clock.monotonicMs() });

  return {
    branches,
    brokenAbsentSinceMs: new Map(),
    listAskedAtMonotonicMs: Number.NEGATIVE_INFINITY,
    cachedProject: (projectId) => noNewer(cachedProjects.get(projectId), clock),
    cachedProjects: () => [...cachedProjects.values()].map((cached) => noNewer(cached, clock)),
    see(cachedProject) {
      const { projectId } = cachedProject.project;
      dropEvaluated(projectId, new Set(cachedProject.computes.map(({ computeId }) => computeId)));
      cachedProjects.set(projectId, cachedProject);
      confirmed.delete(projectId);
      return cachedProject;
    },
    list: (project) => void listed.set(project.projectId, project),
    listed: (projectId) => listed.get(projectId),
    projectIds: () => [...listed.keys()],
    forget(projectId) {
      dropEvaluated(projectId, new Set());
      cachedProjects.delete(projectId);
      for (const map of [listed, branches, goneSinceMonotonicMs, confirmed, changedAtMs]) map.delete(projectId);
    },
    putEvaluated(evaluatedCompute) {
      own.set(evaluatedCompute.compute.computeId, evaluatedCompute);
      adopt(evaluatedCompute);
    },
    adopt,
    *evaluatedComputes() {
      for (const { evaluatedCompute } of known.values()) yield evaluatedCompute;
    },
    known: (computeId) => known.get(computeId),
    evaluatedOf: (projectId) =>
      (cachedProjects.get(projectId)?.computes ?? []).flatMap(({ computeId }) => own.get(computeId) ?? []),
    evaluatedCompute: (computeId) => own.get(computeId),
    ageMs,
    goneSinceMonotonicMs,
    listShowsChanges: listsThatShowChanges(verified),
    timeoutsRestart: new Set(),
    listTakenAtMonotonicMs: new Map(),
    surveys: new Map(),
    changedAtMs,
    boundaryReconciles: new Map(),
    confirm: (projectId, atMonotonicMs) => void confirmed.set(projectId, atMonotonicMs),
    confirmedAgeMs,
    isFresh: (id) => confirmedAgeMs(id) <= CONFIRMED_MS || (ageMs(id) <= FRESH_MS && confirmed.get(id) !== DOUBTED),
  };
}

function listsThatShowChanges(verified: VerifiedFacts): Map<string, boolean> {
  const facts = [...verified].flatMap(([account, { list_updated_at: shown }]) =>
    shown === undefined ? [] : [[account, shown === 'moves'] as const],
  );
  return new Map(facts);
}

/** A reading made by a clock that has been set back since would be newer than every later change: it is no newer than its age. */
function noNewer<C extends CachedProject | undefined>(cached: C, clock: Clock): C {
  if (cached)
    cached.readAtMs = Math.min(cached.readAtMs, clock.now() - (clock.monotonicMs() - cached.readAtMonotonicMs));
  return cached;
}
