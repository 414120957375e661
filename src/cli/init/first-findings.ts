import { printable } from '../../common/safe-text.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { Finding } from '../../domain/recommend/finding.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import { holidaysOf } from '../../policy/calendars/public-holidays.ts';
import type { Settings } from '../../settings/settings.ts';
import { readPast } from '../past/read-past.ts';
import type { ReadFleet } from '../read-fleet.ts';
import { readablePolicies, recommendFacts } from '../recommend/facts.ts';
import { changeText, savedText } from '../recommend/text.ts';

const MOST_SHOWN = 5;
const DAYS = 28;
/** A first try must be quick: a minute's limit of the control API, less a margin. */
const MOST_REQUESTS = 600;
const [FEWEST_PROJECTS, MOST_PROJECTS] = [50, 200];

/** Of how many projects the operations are read: of a large fleet, whose computes and branches took a request each, of few. */
export function projectsToRead(inFleet: number): number {
  return Math.min(MOST_PROJECTS, Math.max(FEWEST_PROJECTS, MOST_REQUESTS - 2 * inFleet));
}

/**
 * Finds the largest costs from the newest operations of recently used projects: the first lines of `ebb recommend`. And the plan of the
 * account, where its usage tells.
 */
export async function firstFindings(
  settings: Settings,
  fleet: ReadFleet,
): Promise<{ findings: Finding[]; plan: AccountPlan | undefined }> {
  const projects = fleet.projects
    .toSorted((a, b) => (b.computeLastActiveAtMs ?? 0) - (a.computeLastActiveAtMs ?? 0))
    .slice(0, projectsToRead(fleet.projects.length));
  const ids = new Set(projects.map(({ projectId }) => projectId));
  const computes = fleet.computes.filter(({ projectId }) => ids.has(projectId));
  const reading = { ...fleet, projects, computes, errors: [] };
  const past = await readPast(settings, { days: DAYS, live: true }, { branches: true, fleet: reading, mostPages: 1 });
  const findings = recommend(recommendFacts(settings, past.computes, { policies: await readablePolicies(settings) }), {
    holidaysOf,
  });
  const plans = new Set(past.computes.flatMap(({ plan }) => plan ?? []));
  // The settings have one for all.
  return { findings: firstOf(findings), plan: plans.size === 1 ? [...plans][0] : undefined };
}

/** Those that may save most. */
export function firstOf(findings: readonly Finding[]): Finding[] {
  return findings.filter(({ savesCuHours }) => savesCuHours.high > 0).slice(0, MOST_SHOWN);
}

/** One line for each finding. */
export function findingLines(findings: readonly Finding[]): string[] {
  return findings.map((finding) => {
    const { projectName, computeId } = finding.compute;
    const name = printable(`${projectName} / ${computeId}`);
    return `${name}: ${finding.finding}, ${changeText(finding)}, ${savedText(finding)} a month (${finding.figure})`;
  });
}
