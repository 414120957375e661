import { counted } from '../../common/names.ts';
import { createOperationLog, type OperationLog } from '../../domain/awake/operation-log.ts';
import { OPERATIONS_HEADER, operationLine } from '../../domain/awake/operations-csv.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { KnownProjects } from '../../domain/policy/owners.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { usageLowerBound } from '../../domain/usage/lower-bound.ts';
import type { UsageSeries } from '../../domain/usage/usage.ts';
import type { ControlApiError, Project, UsagePages, UsageQuery } from '../../ports/control-api.ts';
import { type FleetReading, type OnProgress, readFleet } from '../fleet/read-fleet.ts';
import { addOperations as addToLog, type OperationsProgress, readOperations } from '../fleet/read-operations.ts';
import {
  covers,
  type KeptOperations,
  readKeptOperations,
  readPlan,
  withKeptOperations,
} from '../usage/kept-operations.ts';
import { lastPlan, readPlans } from '../usage/project-periods.ts';
import { type OrganizationUsage, readKnownUsage } from '../usage/read-usage.ts';
import { namesOf, readIdentities } from '../usage/spenders.ts';
import {
  type KeptTrial,
  type PoliciesSince,
  readPolicyChanges,
  readTrialDays,
  type TrialDays,
} from '../usage/trial-days.ts';
import { type Organization, organizationsOf, type StoredUsage, usageReader } from '../usage/usage-account.ts';
import { type FleetSource, noteOf } from './read-situation.ts';

export interface FleetUsage {
  usages: OrganizationUsage[];
  /** The plans that are known without a request, by account. */
  plans: ReadonlyMap<string, AccountPlan>;
  computes: Compute[];
  projects: Project[];
  /** The names, deleted computes and unread projects by which owners are found. */
  known: Required<KnownProjects>;
  /** One line for each part that could not be read. */
  missing: string[];
  /** What the user must know about the data, one line each. */
  notes: string[];
  /** The stored days of the requested trial, by unit. */
  trialDays: ReadonlyMap<string, TrialDays>;
  /** Changes of policies during the trial; undefined if no daemon noted policies. */
  policyChanges?: readonly PoliciesSince[];
}

export interface UsageSources extends Pick<FleetSource, 'api' | 'explain' | 'note'> {
  /** Usage that daemons have collected; undefined if it can't be read. */
  stored: StoredUsage | undefined;
  /** The accounts in the settings. */
  accounts: readonly { name: string; organization?: string }[];
  /** Usage that an earlier command on this machine has cached. */
  cache?: { usage(query: UsageQuery): Promise<UsagePages | undefined> };
}

export interface FleetUsageOptions {
  nowMs: number;
  /** Reads names of branches, too, which costs a request for each project. */
  readBranches?: boolean;
  onProgress?: OnProgress;
  /** Reads operations, too, and appends the lines of `operations.csv` to `lines`. */
  operations?: {
    days: number;
    lines: string[];
    monotonicMs: () => number;
    onProgress?: (progress: OperationsProgress) => void;
  };
  /** Reads the stored data of a trial, too. */
  trial?: KeptTrial;
}

/** Reads the fleet, and the usage of its organizations as collected by daemons or else from the control API. Wakes no compute. */
export async function fleetUsage(
  sources: UsageSources,
  { nowMs, operations, trial, onProgress, readBranches = false }: FleetUsageOptions,
): Promise<FleetUsage> {
  const { api, explain, stored } = sources;
  const fleet = await readFleet({ api, readBranches, onProgress });
  const listed = [...fleet.projects, ...fleet.unread];
  const { usages, missing } = await usageOfProjects(sources, { projects: listed, computes: fleet.computes, nowMs });
  missing.unshift(...fleet.errors.map(explain));
  if (operations)
    missing.push(...(await addOperations(api, projectsInUse(fleet), { ...operations, nowMs })).map(explain));
  const organizations = organizationsOf(listed, sources.accounts);
  const known = await readKnownProjects(stored, organizations, { listed, unread: fleet.unread });
  const trialDays = stored && trial ? await readAllTrialDays(stored, organizations, trial) : new Map();
  const policyChanges = stored && trial && (await readAllPolicyChanges(stored, organizations, trial));
  const { computes, projects } = fleet;
  const plans = await plansOf(sources, { projects, mayAsk: false, usages });
  const notes = noteOf(sources);
  return {
    usages,
    plans,
    computes,
    projects,
    known,
    missing,
    notes,
    trialDays,
    ...(policyChanges && { policyChanges }),
  };
}

/** The projects that have computes; others have no operations of interest. */
export function projectsInUse({ projects, computes }: Pick<FleetReading, 'projects' | 'computes'>): Project[] {
  const inUse = new Set(computes.map(({ projectId }) => projectId));
  return projects.filter(({ projectId }) => inUse.has(projectId));
}

/** Returns the projects and computes that owners are found by, including deleted ones that daemons have seen. */
async function readKnownProjects(
  stored: StoredUsage | undefined,
  organizations: readonly Organization[],
  { listed, unread }: { listed: readonly Project[]; unread: readonly Project[] },
): Promise<Required<KnownProjects>> {
  const all = stored
    ? await Promise.all(organizations.map((organization) => readIdentities(stored, organization)))
    : [];
  return {
    projects: [...all.flatMap(({ projects }) => projects), ...listed.map(namesOf)],
    past: all.flatMap(({ computes }) => computes),
    unread: new Set(unread.map(({ projectId }) => projectId)),
  };
}

/**
 * Returns the usage of projects as daemons have collected it, or as a command has cached it, or from the control API if there are at most
 * `mostProjectsAsked`. `missing` has one line for each part that could not be read.
 */
export async function usageOfFew(
  sources: UsageSources,
  { projects, nowMs, mostProjectsAsked }: { projects: readonly Project[]; nowMs: number; mostProjectsAsked: number },
): Promise<{ series: UsageSeries[]; missing: string[] }> {
  const isAsked = projects.length <= mostProjectsAsked;
  const { usages, missing } = await usageOfProjects(isAsked ? sources : withoutAsking(sources, mostProjectsAsked), {
    projects,
    nowMs,
  });
  return { series: usages.flatMap(({ series }) => series), missing };
}

function withoutAsking({ cache, ...sources }: UsageSources, mostProjectsAsked: number): UsageSources {
  const message =
    mostProjectsAsked === 0
      ? 'daemons have not collected it, which they do some minutes after a start on a paid plan; --live asks the control API'
      : `the control API is asked for at most ${mostProjectsAsked} projects: give --usage FILE (ebb usage export), or start ebb run, which collects it`;
  const error = { code: 'not_found', route: 'usage', message } as const;
  const usage: FleetSource['api']['usage'] = async (query) => {
    const value = await cache?.usage(query);
    return value ? { ok: true, value } : { ok: false, error };
  };
  return { ...sources, api: { ...sources.api, usage }, explain: () => message };
}

async function readAllTrialDays(
  stored: StoredUsage,
  organizations: readonly Organization[],
  { name, units }: Pick<KeptTrial, 'name' | 'units'>,
): Promise<Map<string, TrialDays>> {
  const all = await Promise.all(organizations.map((organization) => readTrialDays(stored, organization, name, units)));
  return new Map(all.flatMap((days) => [...days]));
}

/**
 * Returns the policy changes during a trial. Daemons of a group share one policy set and note its changes in each organization, so the longest
 * list is complete.
 */
async function readAllPolicyChanges(
  stored: StoredUsage,
  organizations: readonly Organization[],
  trial: Pick<KeptTrial, 'name' | 'design'>,
): Promise<PoliciesSince[] | undefined> {
  const all = await Promise.all(organizations.map((organization) => readPolicyChanges(stored, organization, trial)));
  const noted = all.filter((changes) => changes !== undefined);
  return noted.toSorted((a, b) => b.length - a.length)[0];
}

/**
 * Finds the plans of the projects' accounts: in `usages` or else the stored usage, then in the store, and then, if `mayAsk`, by asking the
 * control API for one project of each account.
 */
export async function plansOf(
  { api, stored, accounts }: UsageSources,
  {
    projects,
    mayAsk,
    usages,
  }: { projects: readonly Project[]; mayAsk: boolean; usages?: readonly OrganizationUsage[] },
): Promise<ReadonlyMap<string, AccountPlan>> {
  const inUsage = usages ?? (await storedPlans(stored, organizationsOf(projects, accounts)));
  const plans = new Map<string, AccountPlan>();
  for (const account of new Set(projects.map((project) => project.account))) {
    const plansOfAccount = inUsage.flatMap((usage) => (usage.account === account ? (lastPlan(usage.plans) ?? []) : []));
    const plan = plansOfAccount.at(-1) ?? (stored && (await readPlan(stored, account)));
    if (plan) plans.set(account, plan);
  }
  if (!mayAsk) return plans;
  const asked = await readPlans({ api, projects, isKnown: (account) => plans.has(account) });
  return new Map([...plans, ...asked]);
}

async function storedPlans(stored: StoredUsage | undefined, organizations: readonly Organization[]) {
  const all = organizations.map(async ({ account, organization }) => {
    const metadata = stored && (await usageReader(stored, { account, organization }).metadata());
    return { account, plans: metadata?.plans ?? [] };
  });
  return Promise.all(all);
}

export interface FewOperations {
  log: OperationLog;
  /** When stored operations were read, milliseconds since the epoch, by project. */
  storedAtMs: ReadonlyMap<string, number>;
  /** The number of projects whose operations were not read. */
  unread: number;
}

/**
 * Reads the operations of projects from the store, or from `readLately`, which a command has read before. If at most `mostProjectsAsked` projects
 * are in neither, their operations are read from the control API.
 */
export async function operationsOfFew(
  { api, stored }: UsageSources,
  options: {
    projects: readonly Project[];
    sinceMs: number;
    nowMs: number;
    mostProjectsAsked: number;
    monotonicMs: () => number;
    /** By project. */
    readLately?: ReadonlyMap<string, KeptOperations> | undefined;
  },
): Promise<FewOperations> {
  const { projects, sinceMs, nowMs, mostProjectsAsked, monotonicMs, readLately } = options;
  const projectIds = projects.map(({ projectId }) => projectId);
  const inStore = stored ? await readKeptOperations(stored, { sinceMs, nowMs, projectIds }) : [];
  const kept = new Map<string, Uint8Array | KeptOperations>(inStore);
  for (const projectId of projectIds) {
    const read = kept.has(projectId) ? undefined : readLately?.get(projectId);
    if (read && covers(read, sinceMs, nowMs)) kept.set(projectId, read);
  }
  const isAsked = projects.length - kept.size <= mostProjectsAsked;
  const log = createOperationLog();
  const storedAtMs = new Map<string, number>();
  const { states } = await readOperations({
    api: withKeptOperations(kept, (...args) => api.operationsFrom(...args)),
    projects: isAsked ? projects : projects.filter(({ projectId }) => kept.has(projectId)),
    sinceMs,
    nowMs,
    monotonicMs,
    onPage(projectId, operations, complete, { storedAtMs: readAtMs }) {
      addToLog(log.project(projectId), operations);
      if (complete) log.project(projectId).coverFrom((readAtMs ?? nowMs) - (nowMs - sinceMs));
      if (readAtMs !== undefined) storedAtMs.set(projectId, readAtMs);
    },
  });
  const read = [...states.values()].filter((state) => state.read === 'all').length;
  return { log, storedAtMs, unread: projects.length - read };
}

/** Returns the usage of the organizations that projects belong to, and one line for each part that could not be read. */
export async function usageOfProjects(
  { api, explain, stored, accounts }: UsageSources,
  { projects, computes = [], nowMs }: { projects: readonly Project[]; computes?: readonly Compute[]; nowMs: number },
): Promise<Pick<FleetUsage, 'usages' | 'missing'>> {
  const missing: string[] = [];
  const usages: OrganizationUsage[] = [];
  const lowerBound = usageLowerBound(computes, nowMs);
  for (const { account, organization, projectIds } of organizationsOf(projects, accounts)) {
    const collected = stored && usageReader(stored, { account, organization });
    const read = await readKnownUsage(collected, { api, account, organization, projectIds, nowMs, lowerBound });
    if (!read.ok) {
      const code = read.error.status ?? read.error.code;
      missing.push(`usage of ${organization} is unavailable (${code}): ${explain(read.error)}`);
      continue;
    }
    usages.push(read.value);
    const { branchesProblem } = read.value;
    if (branchesProblem !== undefined)
      missing.push(`usage of branches of ${organization} is unavailable: ${branchesProblem}`);
  }
  const personal = projects.filter(({ organizationId }) => organizationId === undefined).length;
  if (personal > 0) {
    const projectCount = counted(personal, 'project');
    missing.push(
      `usage of ${projectCount} without an organization is unavailable: Neon meters it for organizations only`,
    );
  }
  return { usages, missing };
}

/** Appends the operations of projects to `lines`, newest first within a project. Returns the errors. */
async function addOperations(
  api: FleetSource['api'],
  projects: readonly Project[],
  { days, lines, onProgress, nowMs, monotonicMs }: NonNullable<FleetUsageOptions['operations']> & { nowMs: number },
): Promise<ControlApiError[]> {
  lines.push(OPERATIONS_HEADER);
  const sinceMs = nowMs - days * DAY_MS;
  const { errors } = await readOperations({
    api,
    projects,
    sinceMs,
    nowMs,
    monotonicMs,
    ...(onProgress && { onProgress }),
    onPage(_, page) {
      for (const operation of page) if (operation.createdAtMs >= sinceMs) lines.push(operationLine(operation));
    },
  });
  return errors;
}
