/** Whose usage there is, as the leader knows it. */
import { createHash } from 'node:crypto';
import type { Compute } from '../../domain/compute/compute.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CurrentRules } from '../rules.ts';
import { goneProjects, organizationsOf, withGone } from './usage-account.ts';

export interface SpendersDeps {
  store: Store;
  fleet: Pick<Fleet, 'projectIds' | 'listed' | 'cachedProjects'>;
  rules: CurrentRules;
  accounts: readonly { name: string; organization?: string }[];
}

export function computesOf({ fleet }: Pick<SpendersDeps, 'fleet'>): Compute[] {
  return [...fleet.cachedProjects()].flatMap((project) => project.computes);
}

export function listedProjects({ fleet }: Pick<SpendersDeps, 'fleet'>): Project[] {
  return fleet.projectIds().flatMap((projectId) => fleet.listed(projectId) ?? []);
}

/** Who owns what was used: also by projects that were deleted, as they were last seen. */
export async function spendersOf(deps: SpendersDeps) {
  const { store, accounts, rules } = deps;
  const { costs, policies } = rules.current;
  const computes = computesOf(deps);
  const listed = listedProjects(deps);
  const organizations = organizationsOf(listed, accounts);
  const gone = await goneProjects(store, organizations);
  const ownerOf = ownersOf({
    ...{ rules: costs.owners, policies, ...withGone({ projects: listed, computes }, gone) },
    unread: new Set(unreadProjects(deps).map(({ projectId }) => projectId)),
  });
  return { computes, ownerOf, organizations };
}

/** Those that are listed and whose computes are not known yet. */
function unreadProjects(deps: SpendersDeps): Project[] {
  const read = new Set([...deps.fleet.cachedProjects()].map(({ project }) => project.projectId));
  return listedProjects(deps).filter(({ projectId }) => !read.has(projectId));
}

/** Another text whenever an owner of something may be another: what was shown is then attributed again. */
export function attributionOf(deps: SpendersDeps): string {
  const hash = createHash('sha256').update(
    JSON.stringify([deps.rules.current.costs.owners, deps.rules.current.policies.set.hash]),
  );
  for (const { projectId, name } of unreadProjects(deps)) hash.update(`${projectId} ${name}\n`);
  for (const { computeId, projectId, projectName, branchId, branchName } of computesOf(deps)) {
    hash.update(`${computeId} ${projectId} ${projectName} ${branchId} ${branchName}\n`);
  }
  return hash.digest('base64');
}
