import { OPERATIONS_HEADER, operationLine } from '../../domain/awake/operations-csv.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { KnownProjects } from '../../domain/policy/owners.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { leastUsageOf } from '../../domain/usage/known.ts';
import type { UsageSeries } from '../../domain/usage/usage.ts';
import type { ControlApiError, Project } from '../../ports/control-api.ts';
import { type OnProgress, readFleet } from '../fleet/read-fleet.ts';
import { type OperationsProgress, readOperations } from '../fleet/read-operations.ts';
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
import type { FleetSource } from './read-situation.ts';

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

/** The sources of usage; `stored` is what daemons have collected, where that can be read. */
export interface UsageSources {
  api: FleetSource['api'];
  explain: FleetSource['explain'];
  stored: StoredUsage | undefined;
  /** Of the settings. */
  accounts: readonly { name: string; organization?: string }[];
}

export interface FleetUsageOptions {
  nowMs: number;
  /** Reads names of branches: they cost a request for each project. */
  readBranches?: boolean;
  /** Called with how far the reading of the fleet has come. */
  onProgress?: OnProgress;
  /** Reads operations, too: gets `operations.csv` line by line. */
  operations?: {
    days: number;
    lines: string[];
    monotonicMs: () => number;
    onProgress?: (progress: OperationsProgress) => void;
  };
  /** Reads what daemons keep of a trial, too. */
  trial?: Pick<KeptTrial, 'name' | 'units'>;
}

/**
 * Reads the fleet from the control API, and the usage of each organization in it: what daemons have collected, where that can be read,
 * and else what the control API knows. Wakes nothing and writes nothing.
 */
export async function fleetUsage(
  sources: UsageSources,
  { nowMs, operations, trial, onProgress, readBranches = false }: FleetUsageOptions,
): Promise<FleetUsage> {
  const { api, explain, stored } = sources;
  const fleet = await readFleet({ api, readBranches, onProgress });
  const listed = [...fleet.projects, ...fleet.unread];
  const { usages, missing } = await usageOfProjects(sources, { projects: listed, computes: fleet.computes, nowMs });
  missing.unshift(...fleet.errors.map(explain));
  if (operations) missing.push(...(await addOperations(api, fleet.projects, { ...operations, nowMs })).map(explain));
  const organizations = organizationsOf(listed, sources.accounts);
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
export async function usageOfFew(
  sources: UsageSources,
  // Of more projects the control API is not asked.
  { projects, nowMs, mostProjectsAsked }: { projects: readonly Project[]; nowMs: number; mostProjectsAsked: number },
): Promise<{ series: UsageSeries[]; missing: string[] }> {
  const message = `the control API is asked for at most ${mostProjectsAsked} projects: give --usage FILE (ebb usage export), or start ebb run, which collects it`;
  const refused = { code: 'not_found', route: 'usage', message } as const;
  const asked =
    projects.length <= mostProjectsAsked
      ? sources
      : {
          ...sources,
          api: { ...sources.api, usage: async () => ({ ok: false as const, error: refused }) },
          explain: () => message,
        };
  const { usages, missing } = await usageOfProjects(asked, { projects, nowMs });
  return { series: usages.flatMap(({ series }) => series), missing };
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
  { api, explain, stored, accounts }: UsageSources,
  { projects, computes = [], nowMs }: { projects: readonly Project[]; computes?: readonly Compute[]; nowMs: number },
): Promise<Pick<FleetUsage, 'usages' | 'missing'>> {
  const missing: string[] = [];
  const usages: OrganizationUsage[] = [];
  const least = leastUsageOf(computes, nowMs);
  for (const { account, organization, projectIds } of organizationsOf(projects, accounts)) {
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
  api: FleetSource['api'],
  projects: readonly Project[],
  { days, lines, onProgress, nowMs, monotonicMs }: NonNullable<FleetUsageOptions['operations']> & { nowMs: number },
): Promise<ControlApiError[]> {
  lines.push(OPERATIONS_HEADER);
  const sinceMs = nowMs - days * DAY_MS;
  const { errors } = await readOperations({
    ...{ api, projects, sinceMs, nowMs, monotonicMs },
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
