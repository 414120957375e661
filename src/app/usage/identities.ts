/**
 * Names of projects and the contents of branches, for policies and owner rules about units whose usage is kept. It outlives projects and
 * branches, so that their usage stays with its owner and in the budgets that selected them. Stored beside the usage.
 */
import { parseJson } from '../../common/result.ts';
import type { ComputeIdentity } from '../../domain/compute/compute.ts';
import type { ProjectNames } from '../../domain/policy/select.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { Project } from '../../ports/control-api.ts';
import type { UsageStore } from '../../ports/store.ts';
import { type Place, type StoredUsage, unitNamed, usageKey } from './usage-account.ts';

/** Of a unit no more computes are kept: one is at most 3 KB. */
const MOST_COMPUTES = 12;
const UNITS_AT_ONCE = 500;

export interface Identities {
  /** Projects with the names that they had last. */
  projects: ProjectNames[];
  /** The computes that each branch had last. */
  computes: ComputeIdentity[];
}

/** Of a project, or of a branch. */
interface Stored {
  name?: string;
  computes?: Omit<ComputeIdentity, 'account' | 'projectId' | 'projectName' | 'projectNameUnknown' | 'branchId'>[];
}

/** Under which name a store keeps them. */
export function identitiesKey(place: Place): string {
  return `${usageKey(place)}/identities`;
}

/** The stored identities of an organization. */
export async function readIdentities(store: StoredUsage, place: Place): Promise<Identities> {
  return identitiesOf(place, await readAll(store, place));
}

/**
 * Keeps what projects and computes are now, and forgets units that are neither there nor have usage. Gives everything that is then
 * known. A project whose name can't be read keeps the one that it had.
 */
export async function keepIdentities(
  store: UsageStore,
  place: Place,
  now: { projects: readonly Project[]; computes: readonly ComputeIdentity[]; units: readonly UsageUnit[] },
): Promise<Identities> {
  const known = await readAll(store, place);
  const changed = new Map<string, Uint8Array>();
  const current = currentOf(now);
  for (const [unit, stored] of current) {
    const text = JSON.stringify(stored);
    if (JSON.stringify(known.get(unit)) === text) continue;
    known.set(unit, stored);
    changed.set(unit, new TextEncoder().encode(text));
  }
  const kept = new Set(now.units.flatMap((unit) => [unitName(unit), unit.projectId]));
  const forgotten = [...known.keys()].filter((unit) => !current.has(unit) && !kept.has(unit));
  for (const unit of forgotten) known.delete(unit);
  await store.putUsage(identitiesKey(place), changed);
  await store.deleteUsage(identitiesKey(place), forgotten);
  return identitiesOf(place, known);
}

/** Computes that are there, and of branches where there are none the last that were. */
export function withPast(
  present: readonly ComputeIdentity[],
  past: readonly ComputeIdentity[],
): readonly ComputeIdentity[] {
  const units = new Set(present.map(unitName));
  return [...present, ...past.filter((compute) => !units.has(unitName(compute)))];
}

function currentOf({ projects, computes }: { projects: readonly Project[]; computes: readonly ComputeIdentity[] }) {
  const current = new Map<string, Stored>();
  for (const { projectId, name, nameUnknown } of projects) if (!nameUnknown) current.set(projectId, { name });
  for (const compute of computes) {
    const { computeId, branchName, branchRoles, type, regionId, createdAtMs } = compute;
    const ofBranch = { ...(branchName !== undefined && { branchName }), ...(branchRoles && { branchRoles }) };
    const stored = { computeId, ...ofBranch, type, regionId, createdAtMs };
    const of = current.get(unitName(compute))?.computes ?? [];
    if (of.length < MOST_COMPUTES) current.set(unitName(compute), { computes: [...of, stored] });
  }
  return current;
}

async function readAll(store: StoredUsage, place: Place): Promise<Map<string, Stored>> {
  const key = identitiesKey(place);
  const units = await store.usageUnits(key);
  const all = new Map<string, Stored>();
  for (let at = 0; at < units.length; at += UNITS_AT_ONCE) {
    for (const [unit, bytes] of await store.usage(key, units.slice(at, at + UNITS_AT_ONCE))) {
      all.set(unit, (parseJson(new TextDecoder().decode(bytes)) ?? {}) as Stored);
    }
  }
  return all;
}

function identitiesOf({ account }: Place, all: ReadonlyMap<string, Stored>): Identities {
  const identities: Identities = { projects: [], computes: [] };
  for (const [unit, { name, computes = [] }] of all) {
    const { projectId, branchId } = unitNamed(unit);
    const projectName = name ?? all.get(projectId)?.name;
    const project = {
      ...{ account, projectId, projectName: projectName ?? projectId },
      ...(projectName === undefined && { projectNameUnknown: true as const }),
    };
    if (branchId === null) identities.projects.push(project);
    else identities.computes.push(...computes.map((compute) => ({ ...project, ...compute, branchId })));
  }
  return identities;
}
