import { type OnProgress, readFleet } from '../app/fleet/read-fleet.ts';
import { type OperationsProgress, readOperations } from '../app/fleet/read-operations.ts';
import type { OrganizationUsage } from '../app/usage/read-usage.ts';
import { readKnownUsage } from '../app/usage/read-usage.ts';
import { namesOf, readIdentities } from '../app/usage/spenders.ts';
import {
  type KeptTrial,
  type PoliciesSince,
  readPolicyChanges,
  readTrialDays,
  type TrialDays,
} from '../app/usage/trial-days.ts';
import { type Organization, organizationsOf, type StoredUsage, usageReader } from '../app/usage/usage-account.ts';

import { OPERATIONS_HEADER, operationLine } from '../domain/awake/operations-csv.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { KnownProjects } from '../domain/policy/owners.ts';
import { DAY_MS } from '../domain/time/units.ts';
import { leastUsageOf } from '../domain/usage/known.ts';
import type { UsageSeries } from '../domain/usage/usage.ts';
import type { ControlApiError, Project } from '../ports/control-api.ts';
import type { Settings } from '../settings/settings.ts';
import { openForReading, type Reading } from './reading.ts';
import { openStoredUsage } from './stored-usage.ts';

export interface FleetUsage {
  usages: OrganizationUsage[];
  computes: Compute[];
  projects: Project[];
  /** Further facts about owners: names, deleted computes, and unread projects. */
  known: Required<KnownProjects>;
  /** One line for each part that could not be read. */
  missing: string[];
  /** The stored days of the requested trial, by name of the unit. */
  trialDays: ReadonlyMap<string, TrialDays>;
  /** Changes of policies during it; undefined if daemons have noted nothing. */
  policyChanges?: readonly PoliciesSince[];
}

type Opened<T> = { ok: true; value: T } | { ok: false; problem: string };

export interface FleetUsageOptions {
  settings: Settings;
  nowMs: number;
  /** Reads names of branches: they cost a request for each project. */
  readBranches?: boolean;
  /** Called with how far the reading of the fleet has come. */
  onProgress?: OnProgress;
  /** Reads operations, too: gets `operations.csv` line by line. */
  operations?: { days: number; lines: string[]; onProgress?: (progress: OperationsProgress) => void };
  /** Reads what daemons keep of a trial, too. */
  trial?: Pick<KeptTrial, 'name' | 'units'>;
}

/**
 * Reads the fleet from the control API, and the usage of each organization in it: what daemons have collected, where that can be read,
 * and else what the control API knows. Wakes nothing and writes nothing.
 */
export async function readFleetUsage(options: FleetUsageOptions): Promise<Opened<FleetUsage>> {
  const opened = await openForReading({ settings: options.settings });
  if (!opened.ok) return opened;
  const reading = opened.value;
  const stored = await openStoredUsage(options.settings);
  try {
    return { ok: true, value: await readAll({ ...reading, stored }, options) };
  } finally {
    await stored?.close();
    await reading.close();
  }
}

type Sources = Pick<Reading, 'api' | 'explain'> & { stored?: StoredUsage | undefined };

async function readAll(
  sources: Sources,
  { settings, nowMs, operations, trial, onProgress, readBranches = false }: FleetUsageOptions,
): Promise<FleetUsage> {
  const { api, explain, stored } = sources;
  const fleet = await readFleet({ api, readBranches, onProgress });
  const { usages, missing } = await usageOfProjects(sources, {
    ...{ projects: [...fleet.projects, ...fleet.unread], computes: fleet.computes, settings, nowMs },
  });
  missing.unshift(...fleet.errors.map(explain));
  if (operations) missing.push(...(await addOperations(api, fleet.projects, { ...operations, nowMs })).map(explain));
  const listed = [...fleet.projects, ...fleet.unread];
  const organizations = organizationsOf(listed, settings.accounts);
  const known = await knownProjects(stored, organizations, { listed, unread: fleet.unread });
  const trialDays = stored && trial ? await trialDaysOf(stored, organizations, trial) : new Map();
  const policyChanges = stored && trial && (await policyChangesOf(stored, organizations, trial.name));
  const { computes, projects } = fleet;
  return { usages, computes, projects, known, missing, trialDays, ...(policyChanges && { policyChanges }) };
}

/** Deleted projects and branches are those that daemons have seen. */
async function knownProjects(
  stored: StoredUsage | undefined,
  organizations: readonly Organization[],
  { listed, unread }: { listed: readonly Project[]; unread: readonly Project[] },
): Promise<Required<KnownProjects>> {
  const all = stored ? await Promise.all(organizations.map((place) => readIdentities(stored, place))) : [];
  return {
    projects: [...all.flatMap(({ projects }) => projects), ...listed.map(namesOf)],
    past: all.flatMap(({ computes }) => computes),
    unread: new Set(unread.map(({ projectId }) => projectId)),
  };
}

/**
 * The usage of projects that were read already: of what daemons have collected, or, of few projects, of the control API. `missing` says,
 * one line each, what can't be read.
 */
export async function readUsageOf(options: {
  settings: Settings;
  projects: readonly Project[];
  nowMs: number;
  /** Of more projects the control API is not asked. */
  mostProjectsAsked: number;
}): Promise<{ series: UsageSeries[]; missing: string[] }> {
  const { settings, projects, nowMs, mostProjectsAsked } = options;
  const opened = await openForReading({ settings });
  if (!opened.ok) return { series: [], missing: [opened.problem] };
  const { api, explain, close } = opened.value;
  const stored = await openStoredUsage(settings);
  const message = `the control API is asked for at most ${mostProjectsAsked} projects: give --usage FILE (ebb usage export), or start ebb run, which collects it`;
  const refused = { code: 'not_found', route: 'usage', message } as const;
  const isAsked = projects.length <= mostProjectsAsked;
  const sources = isAsked
    ? { api, explain, stored }
    : { api: { ...api, usage: async () => ({ ok: false as const, error: refused }) }, explain: () => message, stored };
  try {
    const { usages, missing } = await usageOfProjects(sources, { projects, settings, nowMs });
    return { series: usages.flatMap(({ series }) => series), missing };
  } finally {
    await stored?.close();
    await close();
  }
}

async function trialDaysOf(
  stored: StoredUsage,
  organizations: readonly Organization[],
  { name, units }: Pick<KeptTrial, 'name' | 'units'>,
): Promise<Map<string, TrialDays>> {
  const all = await Promise.all(organizations.map((place) => readTrialDays(stored, place, name, units)));
  return new Map(all.flatMap((days) => [...days]));
}

/** Of all organizations of the trial: each daemon group has one set at a time, and notes it in each. */
async function policyChangesOf(
  stored: StoredUsage,
  organizations: readonly Organization[],
  name: string,
): Promise<PoliciesSince[] | undefined> {
  const all = await Promise.all(organizations.map((place) => readPolicyChanges(stored, place, name)));
  const noted = all.filter((changes) => changes !== undefined);
  const longest = noted.toSorted((a, b) => b.length - a.length);
  return longest[0];
}

/** The usage of the organizations that projects belong to, and one line for each part that could not be read. */
export async function usageOfProjects(
  { api, explain, stored }: Sources,
  {
    projects,
    computes = [],
    settings,
    nowMs,
  }: { projects: readonly Project[]; computes?: readonly Compute[]; settings: Settings; nowMs: number },
): Promise<Pick<FleetUsage, 'usages' | 'missing'>> {
  const missing: string[] = [];
  const usages: OrganizationUsage[] = [];
  const least = leastUsageOf(computes, nowMs);
  for (const { account, organization, projectIds } of organizationsOf(projects, settings.accounts)) {
    const kept = stored && usageReader(stored, { account, organization });
    const read = await readKnownUsage(kept, { api, account, organization, projectIds, nowMs, least });
    if (read.ok) usages.push(read.value);
    else
      missing.push(
        `usage of ${organization} is unavailable (${read.error.status ?? read.error.code}): ${explain(read.error)}`,
      );
    if (read.ok && read.value.branchesProblem !== undefined) {
      missing.push(`usage of branches of ${organization} is unavailable: ${read.value.branchesProblem}`);
    }
  }
  const personal = projects.filter(({ organizationId }) => organizationId === undefined).length;
  if (personal > 0) {
    const those = personal === 1 ? '1 project' : `${personal} projects`;
    missing.push(`usage of ${those} without an organization is unavailable: Neon meters it for organizations only`);
  }
  return { usages, missing };
}

/** Adds the operations of projects, those of one newest first; gives what could not be read. */
async function addOperations(
  api: Reading['api'],
  projects: readonly Project[],
  { days, lines, onProgress, nowMs }: NonNullable<FleetUsageOptions['operations']> & { nowMs: number },
): Promise<ControlApiError[]> {
  lines.push(OPERATIONS_HEADER);
  const sinceMs = nowMs - days * DAY_MS;
  const { errors } = await readOperations({
    ...{ api, projects, sinceMs, nowMs, monotonicMs: () => performance.now() },
    ...(onProgress && { onProgress }),
    onPage(_, page) {
      for (const { totalDurationMs, ...operation } of page) {
        if (operation.createdAtMs < sinceMs) continue;
        lines.push(
          operationLine({ ...operation, ...(totalDurationMs !== undefined && { durationMs: totalDurationMs }) }),
        );
      }
    },
  });
  return errors;
}
