import type { Compute } from '../../domain/compute/compute.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { compileProjectSelector } from '../../domain/policy/select.ts';
import { budgetNamed, computeIn, findCompute } from './find-compute.ts';
import type { DaemonView, OperatorParts } from './parts.ts';

/** See `DaemonOperator.teamsOf`. */
export async function teamsOf(
  parts: OperatorParts & { daemon: DaemonView },
  kind: 'compute' | 'set' | 'freeze',
  target: string,
): Promise<string[] | undefined> {
  if (kind === 'set') {
    const staged = parts.daemon.staged().filter(({ hash }) => hash.startsWith(target));
    if (staged.length === 0) return undefined;
    return staged.length === 1 ? staged.map(({ team }) => team) : [];
  }
  if (kind === 'freeze') {
    const freezes = await parts.store.freezes(await parts.now());
    return freezes.flatMap(({ id, team }) => (id === target && team !== undefined ? [team] : []));
  }
  const compute = await computeOf(parts, target);
  const budget = budgetNamed(target);
  // A project may have the name `budget:NAME`; an ambiguous target belongs to no team.
  if (budget !== undefined) return compute ? [] : teamsOfBudget(parts.daemon, budget);
  if (!compute) return hasReadAll(parts.daemon) ? [] : undefined;
  return parts.daemon
    .teams()
    .filter((team) => compileProjectSelector(team)(compute) === 'yes')
    .map(({ name }) => name);
}

/** Returns true once every account was listed, and every listed project was read. */
function hasReadAll({ fleet }: DaemonView): boolean {
  return fleet.isListed() && fleet.projectIds().every((projectId) => fleet.cachedProject(projectId));
}

function teamsOfBudget(daemon: DaemonView, budget: string): string[] {
  const { policies } = daemon.policies().set;
  return policiesOfKind(policies, 'budget').flatMap(({ name, team }) => (name === budget && team ? [team] : []));
}

/** Returns the compute of a hold, or the compute with this name; undefined if the daemon doesn't know the compute. */
export async function computeOf(
  parts: OperatorParts & { daemon: DaemonView },
  target: string,
): Promise<Compute | undefined> {
  const holds = await parts.store.holds(await parts.now());
  const found = await findCompute(parts, target);
  const place = holds.find(({ id }) => id === target) ?? (found.ok ? found.value : undefined);
  const compute = place && computeIn(parts.daemon.fleet, place.computeId);
  // `findCompute` does not check whether the compute of PROJECT/COMPUTE is in that project.
  return compute?.projectId === place?.projectId ? compute : undefined;
}
