import {
  type ComputeReport,
  type PeriodReport,
  type ProjectReport,
  willRunOut,
} from '../../app/recommend/period-report.ts';
import { counted, firstNames } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import { type Estimate, mapEstimate } from '../../domain/estimate.ts';
import { changesIn, type Finding } from '../../domain/recommend/finding.ts';
import { roundTo, sum } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { RunsOut } from '../../domain/usage/runs-out.ts';
import { markdownCode, markdownTable, markdownText } from '../markdown.ts';
import { askedJson, askedLines } from '../past/ask-postgres.ts';
import { changeText, savedText } from '../recommend/text.ts';
import { plainTable } from '../terminal.ts';

/** A project of which parts could not be read. The report claims nothing that depends on these parts. */
export interface UnreadProject {
  projectId: string;
  name: string;
  parts: ('usage' | 'computes' | 'operations')[];
}

export interface ShownReport extends PeriodReport {
  unread?: readonly UnreadProject[];
}

const UNREAD = 'could not be read';

/** Texts list at most this many projects and computes. */
const MAX_SHOWN = 20;
const MAX_BEST = 3;
const MAX_NAMED = 5;

const PROJECT_HEAD = ['project', 'plan', 'used (CU-hours)', 'at the end', 'runs out'];
const COMPUTE_HEAD = ['saves a month', 'compute', 'what helps'];

const BEST_TITLE = 'Most would be saved by:';
const NEXT_TITLE = 'As policies, which ebb then keeps:';
/** The commands of README.md from `ebb init` to `ebb run`, without `ebb validate`. Not joined by `&&`: `ebb plan` exits with 2 for changes. */
const NEXT_COMMANDS = [
  'ebb init                             # once, in an empty folder',
  'ebb recommend --write recommended',
  'cp recommended/*.yaml policies',
  'ebb plan                             # what would be changed',
  'ebb run                              # observes, writes nothing',
];

export function reportText(report: ShownReport): string {
  const { computes } = report;
  const projects = projectRows(report);
  if (projects.length === 0) return 'No project can be read with this key.';
  return [
    ...summaryLines(report),
    '',
    plainTable(PROJECT_HEAD, projects.slice(0, MAX_SHOWN)),
    ...more(projects, 'project'),
    '',
    plainTable(COMPUTE_HEAD, computeRows(report)),
    ...more(computes, 'compute'),
    ...askedText(report),
    ...bestLines(report),
  ].join('\n');
}

/** The report for the job summary of a GitHub Actions workflow. Names in tables are code and other text is escaped, so that no name is markup. */
export function reportMarkdown(report: ShownReport): string {
  const { computes, missing } = report;
  const projects = projectRows(report);
  const encoded = (rows: readonly (readonly string[])[], nameAt: number) =>
    rows.map((cells) => cells.map((cell, index) => (index === nameAt ? markdownCode(cell) : markdownText(cell))));
  return [
    '### ebb report',
    '',
    ...summaryLines(report).map((line) => `${markdownText(line)}  `),
    '',
    ...markdownTable(PROJECT_HEAD, encoded(projects.slice(0, MAX_SHOWN), 0)),
    ...more(projects, 'project'),
    '',
    ...markdownTable(COMPUTE_HEAD, encoded(computeRows(report), 1)),
    ...more(computes, 'compute'),
    ...askedText(report).map((line) => (line === '' ? '' : `${markdownText(line)}  `)),
    ...bestMarkdown(report),
    ...(missing.length === 0 ? [] : ['', 'Left out:', '', ...missing.map((line) => `- ${markdownText(line)}`)]),
  ].join('\n');
}

/** Instants in ISO 8601; CU-hours and dollars rounded to hundredths. */
export function reportJson(report: ShownReport) {
  const { atMs, projects, computes, onLaunch, missing, unread = [] } = report;
  const unreadOperations = unreadIds(report, 'operations');
  return {
    at: isoInstant(atMs),
    projects: projects.map((one) => ({
      project_id: one.projectId,
      name: one.name,
      plan: one.period.plan ?? null,
      period: { from: isoInstant(one.period.fromMs), to: isoInstant(one.period.toMs) },
      used_cu_hours: roundTo(one.period.cuHours, 2),
      included_cu_hours: one.includedCuHours ?? null,
      used_usd: one.usd === undefined ? null : roundTo(one.usd, 2),
      projected_cu_hours: one.projected ? rangeJson(one.projected) : null,
      projected_usd: one.projectedUsd ? rangeJson(one.projectedUsd) : null,
      runs_out: one.runsOut && mayRunOut(one.runsOut, one.period) ? runsOutJson(one.runsOut) : null,
    })),
    computes: computes.map((one) => ({
      project_id: one.compute.projectId,
      compute_id: one.compute.computeId,
      says: saysOf(one, unreadOperations.has(one.compute.projectId)),
      set: one.setting?.proposed ?? null,
      figure: one.setting?.figure ?? null,
      saves_cu_hours_month: one.setting ? rangeJson(one.setting.savesCuHours) : null,
      saves_usd_month: one.setting?.savesUsd ? rangeJson(one.setting.savesUsd) : null,
      ...(one.past.asked && askedJson(one.past.asked, one.past)),
    })),
    totals: totalsJson(report),
    on_launch_usd: onLaunch ? roundTo(onLaunch.usd, 2) : null,
    missing,
    unread: unread.map(({ projectId, name, parts }) => ({ project_id: projectId, name, parts })),
  };
}

/** `projected_usd` adds up the middles of the projections. It is null if no project pays, or if one that pays has no projection. */
function totalsJson({ projects }: ShownReport) {
  const { count, used, atEnd } = paidOf(projects);
  return {
    projects: projects.length,
    run_out: projects.filter(willRunOut).length,
    used_cu_hours: roundTo(sum(projects.map(({ period }) => period.cuHours)), 2),
    used_usd: count === 0 ? null : roundTo(used, 2),
    projected_usd: atEnd === undefined ? null : roundTo(atEnd, 2),
  };
}

/** The number of paying projects, their dollars so far, and their dollars at the end of the period if all have a projection. */
function paidOf(projects: readonly ProjectReport[]): { count: number; used: number; atEnd: number | undefined } {
  const paid = projects.filter(({ usd }) => usd !== undefined);
  const end = sum(paid.map(({ projectedUsd }) => projectedUsd?.mid ?? Number.NaN));
  const used = sum(paid.map(({ usd = 0 }) => usd));
  return { count: paid.length, used, atEnd: paid.length > 0 && Number.isFinite(end) ? end : undefined };
}

function summaryLines(report: ShownReport): string[] {
  const { projects, atMs, onLaunch, unread = [] } = report;
  const unreadPast = unreadIds(report, 'computes', 'operations');
  const isKnown = ({ projectId, projected, runsOut }: ProjectReport) =>
    projected !== undefined || runsOut !== undefined || !unreadPast.has(projectId);
  const included = projects.filter((one) => one.includedCuHours !== undefined && isKnown(one));
  const paid = paidOf(projects);
  const unpriced = projects.filter(
    ({ includedCuHours, usd }) => includedCuHours === undefined && usd === undefined,
  ).length;
  const out = included.filter(willRunOut);
  const atEnd = paid.atEnd === undefined ? '' : `, about ${formatUsd(paid.atEnd)} at the end of the period`;
  const unreadNames = firstNames(
    unread.map(({ name }) => printable(name)),
    MAX_NAMED,
  );
  // The report shows the control API's own total of the period. `ebb cost` and daemons add up hourly usage, which appears about two hours later.
  const delay =
    paid.count === 0 ? '' : ' Usage is until then; ebb cost and ebb status lack the last two to three hours.';
  return [
    ...(included.length === 0
      ? []
      : [
          out.length === 0
            ? `Free: ${counted(included.length, 'project')}; none will probably run out of its ${included[0]?.includedCuHours} CU-hours.`
            : `Free: ${out.length} of ${counted(included.length, 'project')} will probably run out of ${included[0]?.includedCuHours} CU-hours before the period ends.${onLaunch ? onLaunchText(onLaunch) : ''}`,
        ]),
    ...(paid.count === 0
      ? []
      : [`Paid: ${formatUsd(paid.used)} of compute so far in ${counted(paid.count, 'project')}${atEnd}.`]),
    ...(unpriced === 0 ? [] : [`The plan of ${counted(unpriced, 'project')} is not known: no price is shown.`]),
    ...(unread.length === 0 ? [] : [`Could not be read in full: ${unreadNames}.`]),
    `As of ${isoInstant(atMs).slice(0, 16).replace('T', ' ')} UTC.${delay} Ranges are 80 %: one of ten ends below, one above.`,
  ];
}

function onLaunchText({ organizations, projects, usd }: NonNullable<PeriodReport['onLaunch']>): string {
  const theirs = organizations === 1 ? 'their organization' : `their ${organizations} organizations`;
  const whose = projects === 1 ? 'its compute' : `the compute of all ${projects} projects of ${theirs}`;
  return ` On Launch, ${whose} would cost about ${formatUsd(usd)} in this period.`;
}

/** The ids of the projects of which one of these parts could not be read. */
function unreadIds({ unread = [] }: ShownReport, ...wanted: UnreadProject['parts']): ReadonlySet<string> {
  const lacking = unread.filter(({ parts }) => parts.some((part) => wanted.includes(part)));
  return new Set(lacking.map(({ projectId }) => projectId));
}

function projectRows(report: ShownReport): string[][] {
  const unreadPast = unreadIds(report, 'computes', 'operations');
  const withoutUsage = (report.unread ?? []).filter(({ parts }) => parts.includes('usage'));
  return [
    ...report.projects.map((one) => projectCells(one, unreadPast.has(one.projectId) ? UNREAD : 'too few days')),
    ...withoutUsage.map(({ name }) => [printable(name), '?', UNREAD, '', '']),
  ];
}

/** `unknown` is shown in place of a projection, and says why there is none. */
function projectCells(one: ProjectReport, unknown: string): string[] {
  const { name, period, projected, runsOut, includedCuHours, usd } = one;
  const included = includedCuHours === undefined ? '' : ` of ${includedCuHours}`;
  const dollars = usd === undefined ? '' : `, ${formatUsd(usd)}`;
  return [
    printable(name),
    period.plan ?? '?',
    `${hours(period.cuHours)}${included}${dollars}`,
    projected ? `${hours(projected.mid)} (${hours(projected.low)}–${hours(projected.high)})` : unknown,
    includedCuHours === undefined ? '' : outText(period, projected ? 'lasts' : unknown, runsOut),
  ];
}

/** True if the project may run out before its period ends, by the earliest instant of the 80 % range. */
function mayRunOut({ earliestMs }: RunsOut, { toMs }: ProjectReport['period']): boolean {
  return earliestMs < toMs;
}

function outText(period: ProjectReport['period'], otherwise: string, out: RunsOut | undefined): string {
  if (out === undefined) return otherwise;
  const { earliestMs, midMs, latestMs } = out;
  if (midMs === undefined)
    return mayRunOut(out, period) ? `probably lasts, may run out from ${day(earliestMs)} on` : 'probably lasts';
  if (earliestMs === latestMs) return `used up on ${day(midMs)}`;
  return `${day(midMs)} (${day(earliestMs)} to ${latestMs === undefined ? 'never' : day(latestMs)})`;
}

function computeRows(report: ShownReport): string[][] {
  const unread = unreadIds(report, 'operations');
  const shown = report.computes.slice(0, MAX_SHOWN);
  return shown.map((one) => computeCells(one, unread.has(one.compute.projectId)));
}

function computeCells(one: ComputeReport, isUnread = false): string[] {
  const { projectName, computeId } = one.compute;
  const saved = one.setting ? savedText(one.setting) : '';
  return [saved, printable(`${projectName} / ${computeId}`), printable(saysOf(one, isUnread))];
}

/** The setting that would help, or the reason why none does. */
function saysOf({ setting, cause, neverSlept, awakeShare, past: { asked } }: ComputeReport, isUnread: boolean): string {
  if (setting) return changeText(setting);
  // A policy or a hold sets the value, or will.
  if (cause && changesIn(cause).length > 0) return changeText(cause);
  // The first evidence of an `awake` finding is the code of the cause; others begin with a sentence.
  const isUnknown = cause ? cause.evidence[0] === 'unknown' : neverSlept;
  const hint = isUnknown && !asked ? `${cause ? ';' : ':'} --ask-postgres names the client` : '';
  if (cause)
    return `${isUnknown ? 'no setting is known to help' : 'no setting helps'}: ${changeText(cause)}${costOf(cause)}${hint}`;
  if (isUnread) return `its operations ${UNREAD}`;
  if (neverSlept) return `never slept${hint}`;
  if (awakeShare === 0) return 'nothing to change: it was always asleep';
  const inUse = awakeShare === undefined ? '' : `: awake ${Math.ceil(100 * awakeShare)} % of the time, for its clients`;
  return `nothing to change${inUse}`;
}

/** The cost of a cause, so that people see whether it is worth their time to search for it. */
function costOf(cause: Finding): string {
  return cause.savesCuHours.high > 0 ? `, which costs ${savedText(cause)} a month` : '';
}

function askedText({ computes }: ShownReport): string[] {
  return computes.flatMap(({ compute, past }) => {
    if (!past.asked) return [];
    const name = printable(`${compute.projectName} / ${compute.computeId}`);
    return ['', `${name}:`, ...askedLines(past.asked, past).map((line) => `  ${line}`)];
  });
}

/** The settings that would save most, as cells. */
function bestOf({ computes }: ShownReport): string[][] {
  return computes
    .filter(({ setting }) => setting)
    .slice(0, MAX_BEST)
    .map((one) => computeCells(one));
}

function nothingSaves({ unread = [] }: ShownReport): string {
  const asFar = unread.length === 0 ? '' : ', as far as they could be read';
  return `No setting would save anything that the last four weeks show${asFar}.`;
}

function bestLines(report: ShownReport): string[] {
  const best = bestOf(report);
  if (best.length === 0) return ['', nothingSaves(report)];
  return [
    '',
    BEST_TITLE,
    ...best.map(([saved, name, says], index) => `  ${index + 1}. ${name}: ${says}, saves ${saved} a month`),
    NEXT_TITLE,
    ...NEXT_COMMANDS.map((line) => `  ${line}`),
  ];
}

function bestMarkdown(report: ShownReport): string[] {
  const best = bestOf(report);
  if (best.length === 0) return ['', nothingSaves(report)];
  return [
    ...['', BEST_TITLE, ''],
    ...best.map(
      ([saved = '', name = '', says = ''], index) =>
        `${index + 1}. ${markdownCode(name)}: ${markdownText(`${says}, saves ${saved} a month`)}`,
    ),
    ...['', NEXT_TITLE, '', '```sh', ...NEXT_COMMANDS, '```'],
  ];
}

function more(all: readonly unknown[], what: string): string[] {
  const left = all.length - MAX_SHOWN;
  return left > 0 ? ['', `and ${left} more ${what}${left === 1 ? '' : 's'} (--json lists all)`] : [];
}

function hours(cuHours: number): string {
  return cuHours.toLocaleString('en', { maximumFractionDigits: cuHours < 100 ? 1 : 0 });
}

function day(ms: number): string {
  return new Date(ms).toLocaleDateString('en', { timeZone: 'UTC', month: 'short', day: 'numeric' });
}

function rangeJson(estimate: Estimate): Estimate {
  return mapEstimate(estimate, (value) => roundTo(value, 2));
}

function runsOutJson({ earliestMs, midMs, latestMs }: RunsOut) {
  return {
    earliest: isoInstant(earliestMs),
    mid: midMs === undefined ? null : isoInstant(midMs),
    latest: latestMs === undefined ? null : isoInstant(latestMs),
  };
}
