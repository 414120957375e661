import { printable } from '../../common/safe-text.ts';
import type { Finding } from '../../domain/recommend/finding.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import { holidaysOf } from '../../policy/calendars/public-holidays.ts';
import type { Settings } from '../../settings.ts';
import { readPast } from '../past/read-past.ts';
import type { ReadFleet } from '../read-fleet.ts';
import { readablePolicies, recommendFacts } from '../recommend/facts.ts';
import { changeText, savedText } from '../recommend/text.ts';

const MOST_SHOWN = 5;
const DAYS = 28;
/** A first try must not take long: of a large fleet the operations of those projects that were in use last. */
const MOST_PROJECTS = 200;

/** What costs most, by the newest operations of each project: the first lines of `ebb recommend`. */
export async function firstFindings(settings: Settings, fleet: ReadFleet): Promise<Finding[]> {
  const projects = fleet.projects
    .toSorted((a, b) => (b.computeLastActiveAtMs ?? 0) - (a.computeLastActiveAtMs ?? 0))
    .slice(0, MOST_PROJECTS);
  const ids = new Set(projects.map(({ projectId }) => projectId));
  const computes = fleet.computes.filter(({ projectId }) => ids.has(projectId));
  const reading = { ...fleet, projects, computes, errors: [] };
  const past = await readPast(settings, { days: DAYS }, { branches: true, fleet: reading, mostPages: 1 });
  const findings = recommend(recommendFacts(settings, past.computes, { policies: await readablePolicies(settings) }), {
    holidaysOf,
  });
  return firstOf(findings);
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
