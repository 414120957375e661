import { refusedBranchNotes } from '../../app/fleet/branches.ts';
import { missingParts } from '../../app/fleet/missing-parts.ts';
import { type FleetReading, readFleet } from '../../app/fleet/read-fleet.ts';
import { periodReport, willRunOut } from '../../app/recommend/period-report.ts';
import { readPeriods } from '../../app/usage/project-periods.ts';
import type { Finding } from '../../domain/recommend/finding.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import { holidaysOf } from '../../policy/calendars/public-holidays.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import { type FilterFlags, filtered, filtersByBranch, isNarrowed } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';
import { settingsOrFail } from '../or-fail.ts';
import { jsonText, writeErrLine, writeNotes, writeOut } from '../output.ts';
import { type AskFlags, checkAskFlags, withAsked } from '../past/ask-postgres.ts';
import { withProgress } from '../past/progress.ts';
import { type FleetPast, readPast } from '../past/read-past.ts';
import { withReading } from '../read-fleet.ts';
import { readablePolicies, recommendFacts, storedFacts } from '../recommend/facts.ts';
import { firstLines } from '../recommend/text.ts';
import { reportJson, reportMarkdown, reportText, type ShownReport, type UnreadProject } from './text.ts';

export interface ReportFlags extends AskFlags, CommonFlags, FilterFlags {
  format: 'text' | 'json' | 'markdown';
}

/** The exit code if a project runs out before its period ends; that of an error is 1. */
const RUNS_OUT_CODE = 3;
const DAYS = 28;
/** For a quick answer, larger fleets are read in part: the newest page of operations, and branch names only if a flag needs them. */
const MAX_WHOLE_PROJECTS = 50;
const NEWEST_ONLY = `of more than ${MAX_WHOLE_PROJECTS} projects only the newest operations are read: ebb recommend reads them all, and may find more`;

export async function runReport(flags: ReportFlags): Promise<void> {
  const { format } = flags;
  checkAskFlags(flags);
  const settings = settingsOrFail(flags);
  // Owners may be assigned by branch.
  const needsBranches = flags.owner !== undefined || filtersByBranch(flags);
  const { fleet, periods, missing } = await readUsed(settings, needsBranches);
  const projects = [...fleet.projects, ...fleet.unread];
  const isLarge = fleet.projects.length > MAX_WHOLE_PROJECTS;
  const { policies } = await readablePolicies(settings);
  const selected = (computes: FleetPast['computes']) => filtered(computes, flags, { settings, policies });
  const onNewest = async ({ computes }: FleetPast) =>
    writeFirstFindings(recommend(recommendFacts(settings, selected(computes), { policies }), { holidaysOf }));
  const past = await readPast(
    settings,
    { days: DAYS, live: true },
    { fleet, periods, ...(isLarge && { maxPages: 1, onNewest }) },
  );
  const computes = await withAsked(past.computes, { settings, flags, sources: async () => policies?.set.sources });
  const stored = await storedFacts(settings, past.toMs);
  const facts = [...recommendFacts(settings, computes, { ...stored, policies })];
  const known = periodReport({
    atMs: past.toMs,
    projects,
    periods,
    past: computes,
    findings: recommend(facts, { holidaysOf }),
    prices: settings.prices,
    planOf: (account) => accountFor(settings.accounts, account)?.plan,
    missing: [...missing, ...past.missing],
  });
  const whole = { ...known, unread: unreadParts(projects, { fleet, periods, unreadOperations: past.unread }) };
  const report = isNarrowed([], flags) ? ofSelected(whole, selected(computes)) : whole;
  const notes = [...(isLarge ? [NEWEST_ONLY] : []), ...refusedBranchNotes(fleet.branchNamesRefused), ...stored.notes];
  writeNotes({ notes, missing: report.missing });
  writeOut(`${format === 'json' ? jsonText(reportJson(report)) : asText(report, format)}\n`);
  // Replaces the exit code 1 of an unread part, since this is more urgent.
  if (report.projects.some(willRunOut)) process.exitCode = RUNS_OUT_CODE;
}

/**
 * Limits the report to projects with a selected compute. `unread` keeps projects whose computes are unknown, since one may be selected. `onLaunch`
 * is left out, since it is about whole organizations.
 */
function ofSelected({ onLaunch: _others, ...whole }: ShownReport, selected: FleetPast['computes']): ShownReport {
  const computeIds = new Set(selected.map(({ compute }) => compute.computeId));
  const projectIds = new Set(selected.map(({ compute }) => compute.projectId));
  return {
    ...whole,
    projects: whole.projects.filter(({ projectId }) => projectIds.has(projectId)),
    computes: whole.computes.filter(({ compute }) => computeIds.has(compute.computeId)),
    unread: (whole.unread ?? []).filter(
      ({ projectId, parts }) => projectIds.has(projectId) || parts.includes('computes'),
    ),
  };
}

/** Prints the first findings of a large fleet before its usage is read, which takes about as long as everything before. */
function writeFirstFindings(findings: readonly Finding[]): void {
  const lines = firstLines(findings);
  if (lines.length === 0) return;
  writeErrLine('first findings; the usage of each hour is being read:');
  for (const line of lines) writeErrLine(`  ${line}`);
}

/** The parts that could not be read, by project. */
function unreadParts(
  projects: FleetReading['projects'],
  read: { fleet: FleetReading; periods: ReadonlyMap<string, unknown>; unreadOperations: ReadonlySet<string> },
): UnreadProject[] {
  const { fleet, periods, unreadOperations } = read;
  return projects.flatMap((project) => {
    const { projectId, name } = project;
    const parts = [
      ...(periods.has(projectId) ? [] : (['usage'] as const)),
      ...(fleet.unread.includes(project) ? (['computes'] as const) : []),
      ...(unreadOperations.has(projectId) ? (['operations'] as const) : []),
    ];
    return parts.length === 0 ? [] : [{ projectId, name, parts }];
  });
}

function asText(report: ShownReport, format: ReportFlags['format']): string {
  return format === 'markdown' ? reportMarkdown(report) : reportText(report);
}

/** Reads the fleet, and the usage of each project so far in its billing period. Throws a UserError if nothing can be read. */
async function readUsed(settings: Settings, needsBranches: boolean) {
  const readBranches = (projects: number) => needsBranches || projects <= MAX_WHOLE_PROJECTS;
  return withReading({ settings, live: true }, ({ api, explain }) =>
    withProgress(async (progress) => {
      const fleet = await readFleet({ api, readBranches, onProgress: progress.fleet });
      const [first] = fleet.errors;
      if (first && fleet.projects.length === 0) throw new UserError(explain(first));
      const projects = [...fleet.projects, ...fleet.unread];
      const { periods, errors } = await readPeriods({ api, projects, onProgress: progress.periods });
      return { fleet, periods, missing: missingParts(errors, { explain, projects }) };
    }),
  );
}
