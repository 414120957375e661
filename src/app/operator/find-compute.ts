import { severalComputes } from '../../common/names.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { ID, type OperatorResult } from '../../ports/operator.ts';
import { type DaemonView, fail, type OperatorParts, storedRecords } from './parts.ts';

export interface ComputePlace {
  projectId: string;
  computeId: string;
}

export function isId(text: string): boolean {
  return ID.test(text);
}

/**
 * Finds a compute by its id, in the daemon's fleet or else in the store. `PROJECT/COMPUTE` is accepted without a search. The id of a project
 * stands for the project's only compute; if the project has several, the error names them. With a daemon, the project's name does, too.
 */
export async function findCompute(
  parts: OperatorParts,
  target: string,
  inStore = (computeId: string) => findInStore(parts, computeId),
): Promise<OperatorResult<ComputePlace>> {
  const [first = '', second] = target.split('/', 2);
  if (second !== undefined && isId(first) && isId(second)) {
    return { ok: true, value: { projectId: first, computeId: second } };
  }
  const compute = parts.daemon && computeIn(parts.daemon.fleet, target);
  if (compute) return { ok: true, value: { projectId: compute.projectId, computeId: target } };
  const ofProject = await computesOf(parts, target);
  const ids = ofProject.map(({ computeId }) => computeId);
  if (ids.length > 1) return fail('invalid', severalComputes(target, ids));
  const place = ofProject[0] ?? (isId(target) ? await inStore(target) : undefined);
  if (place) return { ok: true, value: place };
  const hint = parts.daemon ? '' : '; a store knows projects by id only, a daemon (--url) by name too';
  return fail('not_found', `${unknownCompute(target)}${hint}`);
}

/** Returns a compute as it was last evaluated, or else as its project was read; undefined if the daemon does not know the compute. */
export function computeIn(fleet: DaemonView['fleet'], id: string): Compute | undefined {
  return fleet.latestEvaluation(id)?.compute ?? cachedComputes(fleet, ({ computeId }) => computeId === id)[0];
}

/** Returns the computes that pass the test, from the readings of all projects: they need not be evaluated yet. */
function cachedComputes(fleet: DaemonView['fleet'], test: (compute: Compute) => boolean): Compute[] {
  return [...fleet.cachedProjects()].flatMap(({ computes }) => computes.filter(test));
}

/** Returns a function like {@link findCompute}, for many computes: it reads all records from the store at most once. */
export function computeFinder(parts: OperatorParts): (target: string) => Promise<OperatorResult<ComputePlace>> {
  let stored: Map<string, ComputePlace> | undefined;
  async function inStore(computeId: string): Promise<ComputePlace | undefined> {
    if (!stored) {
      stored = new Map();
      for await (const place of storedRecords(parts.store)) {
        stored.set(place.computeId, { projectId: place.projectId, computeId: place.computeId });
      }
    }
    return stored.get(computeId);
  }
  return (target) => findCompute(parts, target, inStore);
}

async function computesOf({ daemon, store }: OperatorParts, project: string): Promise<ComputePlace[]> {
  const isNamed = ({ projectId, projectName }: Compute) => projectId === project || projectName === project;
  const evaluated = [...(daemon?.fleet.evaluatedComputes() ?? [])].map(({ compute }) => compute).filter(isNamed);
  const ofProject = evaluated.length > 0 || !daemon ? evaluated : cachedComputes(daemon.fleet, isNamed);
  if (ofProject.length > 0) return ofProject.map(({ projectId, computeId }) => ({ projectId, computeId }));
  if (!isId(project)) return [];
  const records = await store.records(project);
  return [...records.keys()].map((computeId) => ({ projectId: project, computeId }));
}

export async function findInStore(
  parts: Pick<OperatorParts, 'store'>,
  computeId: string,
): Promise<ComputePlace | undefined> {
  for await (const { projectId, computeId: stored } of storedRecords(parts.store)) {
    if (stored === computeId) return { projectId, computeId };
  }
  return undefined;
}

/** Returns the message about a target that is no known compute, or no id at all. */
export function unknownCompute(target: string): string {
  const [first = '', second] = target.split('/', 2);
  if (!isId(first) || (second !== undefined && !isId(second))) {
    return `${JSON.stringify(target.slice(0, 80))} is not the id of a compute, such as ep-cool-sea-12345678`;
  }
  return `ebb does not know a compute ${target}: check the id, or write PROJECT/COMPUTE`;
}

/** Returns the name of the budget if the target is `budget:NAME`; otherwise undefined. */
export function budgetNamed(target: string): string | undefined {
  return /^budget:(.+)$/.exec(target)?.[1];
}
