/** Attributes usage to organizations and owners. */
import { createHash } from 'node:crypto';
import { chunksOf } from '../../common/chunks.ts';
import { parseJson } from '../../common/result.ts';
import type { Compute, ComputeIdentity } from '../../domain/compute/compute.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { ProjectNames } from '../../domain/policy/select.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Store, UsageStore } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CurrentRules } from '../rules.ts';
import {
  type Organization,
  type OrganizationRef,
  organizationsOf,
  type StoredUsage,
  UNITS_AT_ONCE,
  unitNamed,
  usageAccount,
  usageKey,
} from './usage-account.ts';

export interface SpendersDeps {
  store: Store;
  fleet: Pick<Fleet, 'projectIds' | 'listed' | 'cachedProjects' | 'listComparedAtMonotonicMs'>;
  rules: CurrentRules;
  /** The accounts in the settings. */
  accounts: readonly { name: string; organization?: string }[];
}

export interface Spenders {
  organizations: Organization[];
  ownerOf: (unit: UsageUnit) => string;
}

/** The cached computes of all projects, or of an organization. */
export function computesOf({ fleet }: Pick<SpendersDeps, 'fleet'>, organization?: Organization): Compute[] {
  const ids = organization && new Set(organization.projectIds);
  const cached = [...fleet.cachedProjects()].filter(({ project }) => ids?.has(project.projectId) ?? true);
  return cached.flatMap(({ computes }) => computes);
}

export function listedProjects({ fleet }: Pick<SpendersDeps, 'fleet'>): Project[] {
  return fleet.projectIds().flatMap((projectId) => fleet.listed(projectId) ?? []);
}

export function organizationsNow(deps: Pick<SpendersDeps, 'fleet' | 'accounts'>): Organization[] {
  return organizationsOf(listedProjects(deps), deps.accounts);
}

/** The names by which policies select a project. */
export function namesOf({ account, projectId, name: projectName, nameUnknown }: Project): ProjectNames {
  return { account, projectId, projectName, ...(nameUnknown && { projectNameUnknown: nameUnknown }) };
}

/** Stores the present names of projects and computes. Returns all stored names, including those of deleted ones. */
export async function rememberIdentities(deps: SpendersDeps): Promise<Identities> {
  const [projects, computes] = [listedProjects(deps), computesOf(deps)];
  const unread = unreadProjectIds(deps);
  const isListed = ({ account }: Organization) => deps.fleet.listComparedAtMonotonicMs.has(account);
  const all: Identities = { projects: [], computes: [] };
  for (const organization of organizationsNow(deps)) {
    const ids = new Set(organization.projectIds);
    const identities = await keepIdentities(deps.store, organization, {
      projects: projects.filter(({ projectId }) => ids.has(projectId)),
      computes: computes.filter(({ projectId }) => ids.has(projectId)),
      units: await usageAccount(deps.store, organization).units(),
      isUnread: (projectId) => !isListed(organization) || unread.has(projectId),
    });
    all.projects.push(...identities.projects);
    all.computes.push(...identities.computes);
  }
  return all;
}

/** Finds owners by present names, and those of deleted projects and computes by their last names. */
export function spendersOf(deps: SpendersDeps, { projects, computes: past }: Identities): Spenders {
  const { costs, policies } = deps.rules.current;
  const ownerOf = ownersOf({
    rules: costs.owners,
    policies,
    computes: computesOf(deps),
    projects: [...projects, ...listedProjects(deps).map(namesOf)],
    past,
    unread: unreadProjectIds(deps, projects),
  });
  return { ownerOf, organizations: organizationsNow(deps) };
}

/** Projects whose computes are unknown. Until an account's first list, all of its known projects may still exist. */
function unreadProjectIds(deps: Pick<SpendersDeps, 'fleet'>, known: readonly ProjectNames[] = []): Set<string> {
  const { fleet } = deps;
  const read = new Set([...fleet.cachedProjects()].map(({ project }) => project.projectId));
  const unlisted = known.filter(({ account }) => !fleet.listComparedAtMonotonicMs.has(account));
  const ids = [...listedProjects(deps), ...unlisted].map(({ projectId }) => projectId);
  return new Set(ids.filter((projectId) => !read.has(projectId)));
}

/** A hash of all that owners depend on: when it changes, usage is attributed again. */
export function attributionOf(deps: Pick<SpendersDeps, 'fleet' | 'rules'>): string {
  const { costs, policies } = deps.rules.current;
  const listedAccounts = [...deps.fleet.listComparedAtMonotonicMs.keys()];
  const hash = createHash('sha256').update(JSON.stringify([costs.owners, policies.set.hash, listedAccounts]));
  const unread = unreadProjectIds(deps);
  for (const { projectId, name } of listedProjects(deps))
    hash.update(`${projectId} ${name} ${unread.has(projectId)}\n`);
  for (const { computeId, projectId, projectName, branchId, branchName } of computesOf(deps)) {
    hash.update(`${computeId} ${projectId} ${projectName} ${branchId} ${branchName}\n`);
  }
  return hash.digest('base64');
}

/*
 * Names of projects and computes of branches, stored beside their usage. They outlive projects and branches, so that usage of deleted ones
 * stays with its owner and in the budgets that selected them.
 */

/** At most this many computes of a branch are stored; one takes up to 3 KB. */
const MAX_COMPUTES = 12;

export interface Identities {
  /** Projects with the names that they had last. */
  projects: ProjectNames[];
  /** The computes that each branch had last. */
  computes: ComputeIdentity[];
}

/** The identity of a project (`name`) or of a branch (`computes`). */
interface StoredIdentity {
  name?: string;
  computes?: Omit<ComputeIdentity, 'account' | 'projectId' | 'projectName' | 'projectNameUnknown' | 'branchId'>[];
}

function identitiesKey(organization: OrganizationRef): string {
  return `${usageKey(organization)}/identities`;
}

export async function readIdentities(store: StoredUsage, organization: OrganizationRef): Promise<Identities> {
  return identitiesOf(organization, await readAll(store, organization));
}

/**
 * Stores the present projects and computes, and returns all stored ones. Deletes units that do not exist any more and have no usage. A project
 * whose name can't be read keeps its last name.
 */
async function keepIdentities(
  store: UsageStore,
  organization: OrganizationRef,
  now: {
    projects: readonly Project[];
    computes: readonly ComputeIdentity[];
    units: readonly UsageUnit[];
    /** True for projects whose computes are not known now: their stored identities are kept. */
    isUnread(projectId: string): boolean;
  },
): Promise<Identities> {
  const all = await readAll(store, organization);
  const changed = new Map<string, Uint8Array>();
  const current = currentOf(now);
  for (const [unit, identity] of current) {
    const text = JSON.stringify(identity);
    if (JSON.stringify(all.get(unit)) === text) continue;
    all.set(unit, identity);
    changed.set(unit, new TextEncoder().encode(text));
  }
  const withUsage = new Set(now.units.flatMap((unit) => [unitName(unit), unit.projectId]));
  const isGone = (unit: string) =>
    !current.has(unit) && !withUsage.has(unit) && !now.isUnread(unitNamed(unit).projectId);
  const obsolete = [...all.keys()].filter(isGone);
  for (const unit of obsolete) all.delete(unit);
  await store.putUsage(identitiesKey(organization), changed);
  await store.deleteUsage(identitiesKey(organization), obsolete);
  return identitiesOf(organization, all);
}

/** The present computes, and the last ones of branches that have none now. */
export function withPast(
  present: readonly ComputeIdentity[],
  past: readonly ComputeIdentity[],
): readonly ComputeIdentity[] {
  const units = new Set(present.map(unitName));
  return [...present, ...past.filter((compute) => !units.has(unitName(compute)))];
}

function currentOf({ projects, computes }: { projects: readonly Project[]; computes: readonly ComputeIdentity[] }) {
  const current = new Map<string, StoredIdentity>();
  for (const { projectId, name, nameUnknown } of projects) if (!nameUnknown) current.set(projectId, { name });
  for (const compute of computes) {
    const { computeId, branchName, branchRoles, type, regionId, createdAtMs } = compute;
    const ofBranch = { ...(branchName !== undefined && { branchName }), ...(branchRoles && { branchRoles }) };
    const stored = { computeId, ...ofBranch, type, regionId, createdAtMs };
    const before = current.get(unitName(compute))?.computes ?? [];
    if (before.length < MAX_COMPUTES) current.set(unitName(compute), { computes: [...before, stored] });
  }
  return current;
}

async function readAll(store: StoredUsage, organization: OrganizationRef): Promise<Map<string, StoredIdentity>> {
  const key = identitiesKey(organization);
  const units = await store.usageUnits(key);
  const all = new Map<string, StoredIdentity>();
  for (const chunk of chunksOf(units, UNITS_AT_ONCE)) {
    for (const [unit, bytes] of await store.usage(key, chunk)) {
      all.set(unit, (parseJson(new TextDecoder().decode(bytes)) ?? {}) as StoredIdentity);
    }
  }
  return all;
}

function identitiesOf({ account }: OrganizationRef, all: ReadonlyMap<string, StoredIdentity>): Identities {
  const identities: Identities = { projects: [], computes: [] };
  for (const [unit, { name, computes = [] }] of all) {
    const { projectId, branchId } = unitNamed(unit);
    const projectName = name ?? all.get(projectId)?.name;
    const project = {
      account,
      projectId,
      projectName: projectName ?? projectId,
      ...(projectName === undefined && { projectNameUnknown: true as const }),
    };
    if (branchId === null) identities.projects.push(project);
    else identities.computes.push(...computes.map((compute) => ({ ...project, ...compute, branchId })));
  }
  return identities;
}
