import { readFleet } from '../../app/fleet/read-fleet.ts';
import type { OrganizationUsage } from '../../app/usage/read-usage.ts';
import { readFleetUsage } from '../../compose/situation.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { type KnownProjects, ownersNameBranches, ownersOf } from '../../domain/policy/owners.ts';
import type { UsageUnit } from '../../domain/usage/usage.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { type FilterFlags, filtered, filtersByBranch, refuseUnknownOwner } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';
import { groupAlike } from '../group-alike.ts';
import { loadPoliciesOrFail, settingsOrFail } from '../or-fail.ts';
import { withProgress } from '../past/progress.ts';
import { withReading } from '../read-fleet.ts';
import { countInUnit, readUsageCsv } from '../usage/usage-csv.ts';

export interface CostFlags extends CommonFlags, FilterFlags {
  month?: string;
  by: 'owner' | 'project';
  csv?: boolean;
}

/** The usage of one account, with its plans and months. */
export type CostSource = Pick<OrganizationUsage, 'account' | 'series' | 'plans' | 'months' | 'quantities'> & {
  plan: Settings['accounts'][number]['plan'];
};

export interface CostRead {
  sources: CostSource[];
  prices: Settings['prices'];
  ownerOf: (unit: UsageUnit) => string;
  nameOf: (projectId: string) => string;
  /** Tells if a unit is wanted; undefined if all are. */
  isWanted: ((unit: UsageUnit) => boolean) | undefined;
  notes: string[];
}

export async function readCost(flags: CostFlags, nowMs: number): Promise<CostRead> {
  const settings = settingsOrFail(flags);
  const notes: string[] = [];
  const policies = await policiesOf(settings, flags, notes);
  const read =
    flags.usage === undefined
      ? await fromApi(settings, policies, { nowMs, selectsByBranch: filtersByBranch(flags), live: flags.live })
      : await fromFiles(settings, flags.usage, flags.fleet, nowMs);
  const { usages, computes, known } = read;
  notes.push(...(read.notes ?? []), ...read.missing);
  const ownerOf = ownersOf({ rules: settings.owners, policies, computes, ...known });
  const units = usages.flatMap(({ series }) => series);
  const named = [...(known?.projects ?? []), ...computes];
  const names = new Map(named.map(({ projectId, projectName }) => [projectId, projectName]));
  return {
    sources: usages.map((usage) => ({ ...usage, plan: accountFor(settings.accounts, usage.account)?.plan })),
    prices: settings.prices,
    ownerOf,
    isWanted: wantedUnits(flags, { settings, policies, computes, units, ownerOf }),
    nameOf: (projectId) => names.get(projectId) ?? projectId,
    notes,
  };
}

/** The filter of units that the flags ask for. `--owner` may select deleted units, too; `--select` only units whose computes exist. */
function wantedUnits(
  { owner, select }: FilterFlags,
  known: Pick<CostRead, 'ownerOf'> & {
    settings: Settings;
    policies: CompiledPolicies | undefined;
    computes: readonly Compute[];
    units: readonly UsageUnit[];
  },
): CostRead['isWanted'] {
  const { computes, units, ownerOf } = known;
  if (owner === undefined && select === undefined) return undefined;
  if (owner !== undefined) refuseUnknownOwner(owner, units.map(ownerOf));
  if (select === undefined) return (unit) => ownerOf(unit) === owner;
  if (computes.length === 0) throw new UserError('--select needs computes: with --usage give --fleet, too');
  const all = computes.map((compute) => ({ compute }));
  const selected = new Set(filtered(all, { select }, known).map(({ compute }) => compute));
  return (unit) => {
    if (owner !== undefined && ownerOf(unit) !== owner) return false;
    const { projectId, branchId } = unit;
    const ofUnit = computes.filter((one) => one.projectId === projectId && (branchId ?? one.branchId) === one.branchId);
    return ofUnit.length > 0 && ofUnit.every((compute) => selected.has(compute));
  };
}

/** Compiles the policies. If they can't be read, the result is undefined with a note: owners are still known from the settings. */
async function policiesOf(
  settings: Settings,
  flags: CostFlags,
  notes: string[],
): Promise<CompiledPolicies | undefined> {
  try {
    return compilePolicies((await loadPoliciesOrFail(settings.policies, settings)).policies);
  } catch (error) {
    if (!(error instanceof UserError) || flags.policies !== undefined) throw error;
    notes.push(`owners of policies are not known: ${error.message.split('\n')[0]}`);
    return undefined;
  }
}

interface UsageAndFleet {
  usages: Omit<CostSource, 'plan'>[];
  computes: readonly Compute[];
  known?: KnownProjects;
  missing: string[];
  notes?: string[];
}

async function fromApi(
  settings: Settings,
  policies: CompiledPolicies | undefined,
  { nowMs, selectsByBranch, live }: { nowMs: number; selectsByBranch: boolean; live: boolean | undefined },
): Promise<UsageAndFleet> {
  const readBranches = selectsByBranch || policies?.selectsByBranch === true || ownersNameBranches(settings.owners);
  const read = orFail(
    await withProgress(({ fleet }) => readFleetUsage({ settings, live, nowMs, readBranches, onProgress: fleet })),
  );
  const { usages, missing } = read;
  if (usages.length === 0) {
    const why = missing.join('\n') || 'no project has an organization: nothing is known';
    throw new UserError(
      `${why}. ebb recommend estimates without usage; --usage FILE reads it from a file: docs/cost.md`,
    );
  }
  return read;
}

async function fromFiles(
  settings: Settings,
  usage: string,
  fleet: string | undefined,
  nowMs: number,
): Promise<UsageAndFleet> {
  const computes = fleet === undefined ? [] : await computesInFile(settings, fleet, nowMs);
  const countOf = countInUnit(computes);
  const series = await readUsageCsv(usage, (unit) => countOf(unit) || undefined);
  const accountOf = new Map(computes.map(({ projectId, account }) => [projectId, account]));
  const groups = groupAlike(series, ({ projectId }) => accountOf.get(projectId) ?? 'default');
  const usages = groups.map(({ shared: account, members }) => ({
    account,
    series: members,
    plans: [],
    months: new Map(),
    quantities: new Map(),
  }));
  return { usages, computes, missing: [] };
}

async function computesInFile(settings: Settings, fleetFile: string, nowMs: number): Promise<readonly Compute[]> {
  const read = withReading({ settings, fleetFile, nowMs }, ({ api }) => readFleet({ api, readBranches: true }));
  return (await read).computes;
}
