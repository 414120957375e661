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
  conclude(conclusion: Conclusion): void;
  conclusions(): Iterable<Conclusion>;
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
  const conclusions = new Map<string, Conclusion>();
  const branches: Fleet['branches'] = new Map();

  const dropConclusions = (projectId: string, kept: ReadonlySet<string>) => {
    for (const { computeId } of pictures.get(projectId)?.computes ?? []) {
      if (!kept.has(computeId)) conclusions.delete(computeId);
    }
  };

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
    conclude: (conclusion) => void conclusions.set(conclusion.compute.computeId, conclusion),
    conclusions: () => conclusions.values(),
    conclusionsOf: (projectId) =>
      (pictures.get(projectId)?.computes ?? [])
        .map(({ computeId }) => conclusions.get(computeId))
        .filter((conclusion) => conclusion !== undefined),
    conclusion: (computeId) => conclusions.get(computeId),
    ageMs(projectId) {
      const picture = pictures.get(projectId);
      return picture ? clock.monotonicMs() - picture.readAtMonotonicMs : Number.POSITIVE_INFINITY;
    },
  };
}
