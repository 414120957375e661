import type { Foreseeing } from '../../compose/foreseeing.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { type UsageProfile, usageProfile } from '../../domain/forecast/expected.ts';
import { type UsageSeries, unitName } from '../../domain/usage/usage.ts';
import type { Settings } from '../../settings.ts';

/** Of more projects usage is only read from what daemons have collected: the routes for usage allow few requests. */
const MOST_PROJECTS_ASKED = 200;

/** What each compute used by hour of the week, by its id; without those of which it is not known. */
export type UsageProfiles = ReadonlyMap<string, UsageProfile>;

/** From a file, from what daemons have collected, or from the control API. Nothing where none of them has it. */
export async function readUsageProfiles(options: {
  settings: Settings;
  usageFile: string | undefined;
  fleetFile: string | undefined;
  computes: readonly Compute[];
  projects: Foreseeing['projects'];
  nowMs: number;
}): Promise<UsageProfiles> {
  const { usageFile, fleetFile, computes } = options;
  if (usageFile !== undefined) {
    const { readUsageCsv } = await import('../usage/usage-csv.ts');
    const ofUnit = (projectId: string, branchId: string | null) =>
      computes.filter((one) => one.projectId === projectId && (branchId === null || one.branchId === branchId)).length;
    const series = await readUsageCsv(usageFile, ({ projectId, branchId }) => ofUnit(projectId, branchId) || undefined);
    return profilesOf(computes, series);
  }
  if (fleetFile !== undefined) return new Map();
  const { readUsageOf } = await import('../../compose/usage.ts');
  const { settings, projects, nowMs } = options;
  return profilesOf(computes, await readUsageOf({ settings, projects, nowMs, mostProjectsAsked: MOST_PROJECTS_ASKED }));
}

/** A compute's usage is that of its branch or project, where it is the only one there: usage never says which compute it was. */
function profilesOf(computes: readonly Compute[], series: readonly UsageSeries[]): UsageProfiles {
  const buckets = new Map(series.map((one) => [unitName(one), one.buckets]));
  const counts = new Map<string, number>();
  const unitsOf = ({ projectId, branchId }: Compute) => [
    unitName({ projectId, branchId }),
    unitName({ projectId, branchId: null }),
  ];
  for (const unit of computes.flatMap(unitsOf)) counts.set(unit, (counts.get(unit) ?? 0) + 1);
  return new Map(
    computes.flatMap((compute) => {
      const unit = unitsOf(compute).find((name) => buckets.has(name) && counts.get(name) === 1);
      const profile = unit === undefined ? undefined : usageProfile(buckets.get(unit) ?? []);
      return profile ? [[compute.computeId, profile] as const] : [];
    }),
  );
}
