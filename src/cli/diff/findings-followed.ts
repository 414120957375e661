import { hasSettings } from '../../domain/compute/compute.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { type Finding, withProposed } from '../../domain/recommend/finding.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import { holidaysOf } from '../../policy/calendars/public-holidays.ts';
import type { Settings } from '../../settings/settings.ts';
import type { PastFlags } from '../flags.ts';
import { planNotes, readPast } from '../past/read-past.ts';
import { readablePolicies, recommendFacts } from '../recommend/facts.ts';
import type { ComputeChange } from './compare.ts';

/** Reading the operations of more projects would take long. */
const MAX_PROJECTS_ASKED = 200;

/**
 * Returns the findings of `ebb recommend` that the changes follow, so that the changes save what these findings promise. For a snapshot without
 * operations there are none, since the live fleet may have another past than the snapshot.
 */
export async function findingsFollowed(options: {
  settings: Settings;
  flags: PastFlags;
  changes: readonly ComputeChange[];
  /** The fleet's computes with the stored records of their last changes. */
  subjects: readonly ForecastSubject[];
}): Promise<{ findings: readonly Finding[]; notes: readonly string[] }> {
  const { settings, flags, changes, subjects } = options;
  const projectIds = new Set(changes.map(({ compute }) => compute.projectId));
  if (projectIds.size === 0 || (flags.fleet !== undefined && flags.operations === undefined)) {
    return { findings: [], notes: [] };
  }
  if (projectIds.size > MAX_PROJECTS_ASKED && flags.operations === undefined) {
    const note = `${projectIds.size} projects change: what ebb recommend promises is only looked up for ${MAX_PROJECTS_ASKED}, or with --operations`;
    return { findings: [], notes: [note] };
  }
  const past = await readPast(settings, flags, { readBranches: true, projectIds });
  const byCompute = new Map(changes.map((change) => [change.compute.computeId, change]));
  const changed = past.computes.filter(({ compute }) => byCompute.has(compute.computeId));
  const { policies } = await readablePolicies(settings);
  const records = new Map(subjects.map(({ compute, changes: record = {} }) => [compute.computeId, record]));
  const facts = recommendFacts(settings, changed, { policies, records });
  const findings = recommend(facts, { holidaysOf }).filter((one) =>
    isMadeBy(one, byCompute.get(one.compute.computeId)),
  );
  return { findings, notes: [...planNotes(past), ...past.notes, ...past.missing.map((one) => `left out: ${one}`)] };
}

/** True if the compute gets all proposed settings for some of the time. */
function isMadeBy({ proposed }: Finding, change: ComputeChange | undefined): boolean {
  if (Object.keys(proposed).length === 0 || !change) return false;
  return change.differences.some(({ after }) => hasSettings(after, withProposed(after, proposed)));
}
