/** What the store keeps of an organization's usage: a unit's bytes under its name, and what concerns all of them. */

import { parseJson } from '../../common/result.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { decodeUsage, encodeUsage, noUsage, type UnitUsage } from '../../domain/usage/stored.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { Project } from '../../ports/control-api.ts';
import type { UsageStore } from '../../ports/store.ts';

/** No unit has this name, nor one that begins so. */
const ABOUT = ' ';
const GONE_PREFIX = `${ABOUT}gone/`;

/** What was last seen of a project that was deleted: by it what the project used stays with its owner, and in budgets. */
export interface GoneProject {
  project: Project;
  computes: readonly Compute[];
}

/** What concerns all units of an organization. Instants are milliseconds since the epoch. */
export interface UsageAbout {
  /** The hour, and the day, of the last complete reading. */
  hourMs: number;
  dayMs: number;
  /** The plan by the instant from which it counts, oldest first. */
  plans: [fromMs: number, plan: string][];
  /** The account's own figures, CU-seconds by the start of the month. */
  months: [startMs: number, cuSeconds: number][];
  /** Branches that are no longer listed, and since when. */
  gone: [unit: string, sinceMs: number][];
  /** Other metrics than compute by day, summed over projects. */
  quantities: [startMs: number, metrics: Readonly<Record<string, number>>][];
  /** Names of trials of which days are kept. */
  trials: string[];
}

/** What reads usage: a store, or a daemon that has it. */
export type StoredUsage = Pick<UsageStore, 'usageUnits' | 'usage'>;

/** The part of {@link UsageAccount} that only reads. */
export type UsageReader = Pick<UsageAccount, 'about' | 'units' | 'read'>;

export interface UsageAccount {
  about(): Promise<UsageAbout | undefined>;
  putAbout(about: UsageAbout): Promise<void>;
  /** Every unit that is kept. */
  units(): Promise<UsageUnit[]>;
  /** What is kept of these; nothing for one that is not. */
  read(units: readonly UsageUnit[]): Promise<UnitUsage[]>;
  put(usage: readonly UnitUsage[]): Promise<void>;
  /** Projects that were deleted; of each as long as its usage is kept. */
  gone(): Promise<GoneProject[]>;
  putGone(one: GoneProject): Promise<void>;
  forget(units: readonly UsageUnit[]): Promise<void>;
}

interface Place {
  account: string;
  organization: string;
}

/** Under which name a store keeps the usage of an organization. */
export function usageKey({ account, organization }: Place): string {
  return `${account}/${organization}`;
}

/** The usage that a store keeps of an organization. What another version has written counts as not there: it is read again. */
export function usageAccount(store: UsageStore, place: Place): UsageAccount {
  const key = usageKey(place);
  return {
    ...usageReader(store, place),
    putAbout: (about) => store.putUsage(key, new Map([[ABOUT, new TextEncoder().encode(JSON.stringify(about))]])),
    put: (usage) => store.putUsage(key, new Map(usage.map((unit) => [unitName(unit), encodeUsage(unit)]))),
    putGone({ project, computes }) {
      const text = JSON.stringify({ version: GONE_VERSION, project, computes });
      return store.putUsage(key, new Map([[goneName(project.projectId), new TextEncoder().encode(text)]]));
    },
    forget: (units) => store.deleteUsage(key, units.flatMap(namesOf)),
  };
}

/** The same, to read. */
export function usageReader(store: StoredUsage, place: Place): UsageReader & Pick<UsageAccount, 'gone'> {
  const key = usageKey(place);
  return {
    async about() {
      const bytes = (await store.usage(key, [ABOUT])).get(ABOUT);
      return bytes === undefined ? undefined : readAbout(new TextDecoder().decode(bytes));
    },
    units: async () => (await store.usageUnits(key)).filter((name) => !name.startsWith(ABOUT)).map(unitOf),
    async gone() {
      const names = (await store.usageUnits(key)).filter((name) => name.startsWith(GONE_PREFIX));
      const found = names.length === 0 ? [] : [...(await store.usage(key, names)).values()];
      return found.flatMap((bytes) => readGone(new TextDecoder().decode(bytes)) ?? []);
    },
    async read(units) {
      const bytes = await store.usage(key, units.map(unitName));
      return units.map((unit) => {
        const found = bytes.get(unitName(unit));
        return (found && decodeUsage(unit, found)) ?? noUsage(unit);
      });
    },
  };
}

/** Keeps how a project was last seen that is deleted. Of one without an organization there is no usage. */
export async function keepGone(store: UsageStore, { project, computes }: GoneProject): Promise<void> {
  const { account, organizationId: organization } = project;
  if (organization !== undefined) await usageAccount(store, { account, organization }).putGone({ project, computes });
}

/** The deleted projects of some organizations. */
export async function goneProjects(store: StoredUsage, places: readonly Place[]): Promise<GoneProject[]> {
  const all = await Promise.all(places.map((place) => usageReader(store, place).gone()));
  return all.flat();
}

/** Whose usage there is: the projects that are known now, and the deleted ones as they were last seen. `names`: by id of the project. */
export function withGone(
  known: { projects: readonly Project[]; computes: readonly Compute[] },
  gone: readonly GoneProject[],
): { projects: Project[]; computes: Compute[]; names: Map<string, string> } {
  const listed = new Set(known.projects.map(({ projectId }) => projectId));
  const deleted = gone.filter(({ project }) => !listed.has(project.projectId));
  const projects = [...deleted.map(({ project }) => project), ...known.projects];
  return {
    projects,
    computes: [...known.computes, ...deleted.flatMap(({ computes }) => computes)],
    names: new Map(projects.map(({ projectId, name }) => [projectId, name])),
  };
}

const GONE_VERSION = 1;

function goneName(projectId: string): string {
  return `${GONE_PREFIX}${projectId}`;
}

/** Under which names there is something of a unit: what is kept of a deleted project goes with the last of its usage. */
function namesOf(unit: UsageUnit): string[] {
  return unit.branchId === null ? [unitName(unit), goneName(unit.projectId)] : [unitName(unit)];
}

function readGone(text: string): GoneProject | undefined {
  const { version, project, computes } = (parseJson(text) ?? {}) as Partial<GoneProject & { version: number }>;
  return version === GONE_VERSION && project && computes ? { project, computes } : undefined;
}

function unitOf(name: string): UsageUnit {
  const [projectId = '', branchId = null] = name.split('/');
  return { projectId, branchId };
}

function readAbout(text: string): UsageAbout | undefined {
  try {
    const about: Partial<UsageAbout> = JSON.parse(text);
    const { hourMs, dayMs, plans, months, gone, quantities = [], trials = [] } = about;
    const isWhole = typeof hourMs === 'number' && typeof dayMs === 'number' && plans && months && gone;
    return isWhole ? { hourMs, dayMs, plans, months, gone, quantities, trials } : undefined;
  } catch {
    return undefined;
  }
}

/** An organization of an account, and its projects that are known. */
export interface Organization {
  account: string;
  organization: string;
  projectIds: string[];
}

/** The organizations of a fleet: those that settings name, and those of the projects. */
export function organizationsOf(
  projects: Iterable<Pick<Project, 'account' | 'projectId' | 'organizationId'>>,
  accounts: readonly { name: string; organization?: string }[],
): Organization[] {
  const found = new Map<string, Organization>();
  for (const { name: account, organization } of accounts) {
    if (organization !== undefined) found.set(`${account} ${organization}`, { account, organization, projectIds: [] });
  }
  for (const { account, organizationId: organization, projectId } of projects) {
    if (organization === undefined) continue;
    const known = found.get(`${account} ${organization}`) ?? { account, organization, projectIds: [] };
    known.projectIds.push(projectId);
    found.set(`${account} ${organization}`, known);
  }
  return [...found.values()];
}
