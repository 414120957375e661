import type { Compute } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import type { Judgement } from '../domain/judge.ts';
import type { Clock } from '../ports/clock.ts';
import type { Project } from '../ports/control-api.ts';
import type { Branches } from './branches.ts';

/** What was last seen of a project's computes. */
export interface Picture {
  project: Project;
  computes: readonly Compute[];
  /** When the reading began: by the clock (a change sent later is not in it), and on its monotonic time (for the age). */
  readAtMs: number;
  readAtMonotonicMs: number;
}

/** What was last concluded about a compute. */
export interface Conclusion extends Judgement {
  compute: Compute;
  record: ComputeRecord;
}

/** The newest conclusion about a compute, whoever has looked at it. */
interface Known {
  conclusion: Conclusion;
  /** On the clock's monotonic time. */
  atMonotonicMs: number;
}

/**
 * The daemon's picture of the fleet, in memory only: what is lost with it is read again. Keyed by project, then compute.
 */
export interface Fleet {
  picture(projectId: string): Picture | undefined;
  pictures(): Iterable<Picture>;
  see(picture: Picture): Picture;
  /** Keeps what the list of projects says now, so that the next list can be compared with it. */
  list(project: Project): void;
  listed(projectId: string): Project | undefined;
  projectIds(): string[];
  forget(projectId: string): void;
  /** Keeps what this daemon has concluded when it looked at the compute itself, under the project's lease. */
  conclude(conclusion: Conclusion): void;
  /** Keeps what follows from what the store has, of a compute that any daemon of the group may have looked at. */
  adopt(conclusion: Conclusion): void;
  /** The newest conclusion about each compute, own or adopted. */
  conclusions(): Iterable<Conclusion>;
  known(computeId: string): Known | undefined;
  /** This daemon's own: what it compares its next look with. */
  conclusionsOf(projectId: string): Conclusion[];
  conclusion(computeId: string): Conclusion | undefined;
  /** The branches of each project whose branches were listed; none where that is refused. */
  branches: Map<string, { branches: Branches; readAtMonotonicMs: number }>;
  /** When the list of all projects was last asked for, on the clock's monotonic time; −Infinity if it never was. */
  listAskedAtMonotonicMs: number;
  /** Milliseconds since the picture was read; infinite if there is none. */
  ageMs(projectId: string): number;
}

export function createFleet({ clock }: { clock: Clock }): Fleet {
  const listed = new Map<string, Project>();
  const pictures = new Map<string, Picture>();
  const own = new Map<string, Conclusion>();
  const known = new Map<string, Known>();
  const branches: Fleet['branches'] = new Map();

  const dropConclusions = (projectId: string, kept: ReadonlySet<string>) => {
    for (const { computeId } of pictures.get(projectId)?.computes ?? []) {
      if (kept.has(computeId)) continue;
      own.delete(computeId);
      known.delete(computeId);
    }
  };

  const adopt = (conclusion: Conclusion) =>
    void known.set(conclusion.compute.computeId, { conclusion, atMonotonicMs: clock.monotonicMs() });

  return {
    branches,
    listAskedAtMonotonicMs: Number.NEGATIVE_INFINITY,
    picture: (projectId) => pictures.get(projectId),
    pictures: () => pictures.values(),
    see(picture) {
      const { projectId } = picture.project;
      dropConclusions(projectId, new Set(picture.computes.map(({ computeId }) => computeId)));
      pictures.set(projectId, picture);
      return picture;
    },
    list: (project) => void listed.set(project.projectId, project),
    listed: (projectId) => listed.get(projectId),
    projectIds: () => [...listed.keys()],
    forget(projectId) {
      dropConclusions(projectId, new Set());
      pictures.delete(projectId);
      listed.delete(projectId);
      branches.delete(projectId);
    },
    conclude(conclusion) {
      own.set(conclusion.compute.computeId, conclusion);
      adopt(conclusion);
    },
    adopt,
    *conclusions() {
      for (const { conclusion } of known.values()) yield conclusion;
    },
    known: (computeId) => known.get(computeId),
    conclusionsOf: (projectId) =>
      (pictures.get(projectId)?.computes ?? [])
        .map(({ computeId }) => own.get(computeId))
        .filter((conclusion) => conclusion !== undefined),
    conclusion: (computeId) => own.get(computeId),
    ageMs(projectId) {
      const picture = pictures.get(projectId);
      return picture ? clock.monotonicMs() - picture.readAtMonotonicMs : Number.POSITIVE_INFINITY;
    },
  };
}
