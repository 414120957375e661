import type { Compute } from '../../domain/compute/compute.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import type { TeamScope } from '../../domain/policy/team-parts.ts';
import { budgetNamed, findCompute } from './find-compute.ts';
import type { DaemonView, OperatorParts } from './parts.ts';

/**
 * The teams that a target belongs to: the compute of a hold (by its id), or a compute as people name it, by the scopes that its project
 * is in; the team of a budget; a staged policy set (by its hash), by the files that it is of; the team that has set a freeze. None where
 * that is not known.
 */
export async function teamsOf(
  parts: OperatorParts & { daemon: DaemonView },
  kind: 'compute' | 'set' | 'freeze',
  target: string,
): Promise<string[]> {
  if (kind === 'set') {
    const staged = parts.daemon.staged().filter(({ hash }) => hash.startsWith(target));
    return staged.length === 1 ? staged.map(({ team }) => team) : [];
  }
  if (kind === 'freeze') {
    const freezes = await parts.store.freezes(await parts.now());
    return freezes.flatMap(({ id, team }) => (id === target && team !== undefined ? [team] : []));
  }
  const [compute, budget] = [await computeOf(parts, target), budgetNamed(target)];
  if (budget !== undefined) return compute ? [] : teamsOfBudget(parts.daemon, budget);
  if (!compute) return [];
  const isIn = ({ projects }: TeamScope) =>
    compileSelector({ projects, minAgeMs: 0 })(compute, Number.POSITIVE_INFINITY);
  return parts.daemon
    .teams()
    .filter((team) => isIn(team) === 'yes')
    .map(({ name }) => name);
}

/** A project may be called like a budget: what then is meant is of no team. */
function teamsOfBudget(daemon: DaemonView, budget: string): string[] {
  const { policies } = daemon.policies().set;
  return policiesOfKind(policies, 'budget').flatMap(({ name, team }) => (name === budget && team ? [team] : []));
}

/** The compute of a hold, or one as people name it; undefined for what the daemon does not know. */
export async function computeOf(
  parts: OperatorParts & { daemon: DaemonView },
  target: string,
): Promise<Compute | undefined> {
  const holds = await parts.store.holds(await parts.now());
  const found = await findCompute(parts, target);
  const place = holds.find(({ id }) => id === target) ?? (found.ok ? found.value : undefined);
  const compute = place && parts.daemon.fleet.known(place.computeId)?.evaluatedCompute.compute;
  // PROJECT/COMPUTE is believed elsewhere, also where the compute is another project's.
  return compute?.projectId === place?.projectId ? compute : undefined;
}
