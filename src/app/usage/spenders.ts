/** Assigns the leader's readings of usage to organizations and owners. */
import { createHash } from 'node:crypto';
import type { Compute } from '../../domain/compute/compute.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { ProjectNames } from '../../domain/policy/select.ts';
import type { UsageUnit } from '../../domain/usage/usage.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CurrentRules } from '../rules.ts';
import { type Identities, keepIdentities } from './identities.ts';
import { type Organization, organizationsOf, usageAccount } from './usage-account.ts';

export interface SpendersDeps {
  store: Store;
  fleet: Pick<Fleet, 'projectIds' | 'listed' | 'cachedProjects' | 'listTakenAtMonotonicMs'>;
  rules: CurrentRules;
  /** Those of the settings. */
  accounts: readonly { name: string; organization?: string }[];
}

export interface Spenders {
  organizations: Organization[];
  ownerOf: (unit: UsageUnit) => string;
}

export function computesOf({ fleet }: Pick<SpendersDeps, 'fleet'>): Compute[] {
  return [...fleet.cachedProjects()].flatMap((project) => project.computes);
}

export function listedProjects({ fleet }: Pick<SpendersDeps, 'fleet'>): Project[] {
  return fleet.projectIds().flatMap((projectId) => fleet.listed(projectId) ?? []);
}

export function organizationsNow(deps: Pick<SpendersDeps, 'fleet' | 'accounts'>): Organization[] {
  return organizationsOf(listedProjects(deps), deps.accounts);
}

/** A project of the control API, as policies know it. */
export function namesOf({ account, projectId, name: projectName, nameUnknown }: Project): ProjectNames {
  return { account, projectId, projectName, ...(nameUnknown && { projectNameUnknown: nameUnknown }) };
}

/** Keeps what projects and computes are now, of those whose usage is kept; gives everything that is known of them, deleted ones included. */
export async function rememberIdentities(deps: SpendersDeps): Promise<Identities> {
  const [projects, computes] = [listedProjects(deps), computesOf(deps)];
  const all: Identities = { projects: [], computes: [] };
  for (const organization of organizationsNow(deps)) {
    const ids = new Set(organization.projectIds);
    const known = await keepIdentities(deps.store, organization, {
      projects: projects.filter(({ projectId }) => ids.has(projectId)),
      computes: computes.filter(({ projectId }) => ids.has(projectId)),
      units: await usageAccount(deps.store, organization).units(),
    });
    all.projects.push(...known.projects);
    all.computes.push(...known.computes);
  }
  return all;
}

/** By the names of now, and for what is deleted by the last that were known. */
export function spendersOf(deps: SpendersDeps, { projects, computes: past }: Identities): Spenders {
  const { costs, policies } = deps.rules.current;
  const listed = listedProjects(deps);
  const known = { projects: [...projects, ...listed.map(namesOf)], past, unread: unreadProjects(deps, projects) };
  const ownerOf = ownersOf({ rules: costs.owners, policies, computes: computesOf(deps), ...known });
  return { ownerOf, organizations: organizationsNow(deps) };
}

/** Those whose computes are not known yet. Before its first list of projects was read nobody knows which of an account are deleted. */
function unreadProjects(deps: Pick<SpendersDeps, 'fleet'>, known: readonly ProjectNames[] = []): Set<string> {
  const { fleet } = deps;
  const read = new Set([...fleet.cachedProjects()].map(({ project }) => project.projectId));
  const unlisted = known.filter(({ account }) => !fleet.listTakenAtMonotonicMs.has(account));
  const ids = [...listedProjects(deps), ...unlisted].map(({ projectId }) => projectId);
  return new Set(ids.filter((projectId) => !read.has(projectId)));
}

/** Another text whenever an owner of something may be another: what was shown is then attributed again. */
export function attributionOf(deps: Pick<SpendersDeps, 'fleet' | 'rules'>): string {
  const { costs, policies } = deps.rules.current;
  const listedAccounts = [...deps.fleet.listTakenAtMonotonicMs.keys()];
  const hash = createHash('sha256').update(JSON.stringify([costs.owners, policies.set.hash, listedAccounts]));
  const unread = unreadProjects(deps);
  for (const { projectId, name } of listedProjects(deps))
    hash.update(`${projectId} ${name} ${unread.has(projectId)}\n`);
  for (const { computeId, projectId, projectName, branchId, branchName } of computesOf(deps)) {
    hash.update(`${computeId} ${projectId} ${projectName} ${branchId} ${branchName}\n`);
  }
  return hash.digest('base64');
}
