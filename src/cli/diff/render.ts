import { printable } from '../../common/safe-text.ts';
import { type ComputeSettings, sameSize } from '../../domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import { formatUsd, formatUsdRange } from '../../domain/compute/cost.ts';
import type { Range } from '../../domain/estimate.ts';
import type { Difference } from '../../domain/forecast/forecast.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { waveLines } from '../forecast/fleet-waves.ts';
import { formatDay, formatSpan, formatTime } from '../forecast/local-time.ts';
import { savedText } from '../forecast/month.ts';
import { type AlikeGroup, groupAlike, namesOf } from '../group-alike.ts';
import { markdownCode } from '../markdown.ts';
import { notPlannedLines } from '../not-planned.ts';
import { differenceOf, formatRange, formatRangeChange, sumOf } from '../ranges.ts';
import type { Comparison, ComputeChange, PolicyNames } from './compare.ts';

interface RenderOptions extends Span {
  zone: string;
}

/** The markup of an output format. */
interface Marks {
  heading(text: string): string;
  group(text: string): string;
  line(text: string): string;
  detail(text: string): string;
  /** Escapes a name from outside, such as that of a project. */
  name(text: string): string;
}

const TEXT: Marks = {
  heading: (text) => text,
  group: (text) => text,
  line: (text) => `  ${text}`,
  detail: (text) => `    ${text}`,
  name: printable,
};

const MARKDOWN: Marks = {
  heading: (text) => `### ${text}`,
  group: (text) => `**${text}**\n`,
  line: (text) => `- ${text}`,
  detail: (text) => `  - ${text}`,
  name: markdownCode,
};

export function diffText(comparison: Comparison, options: RenderOptions): string {
  return render(comparison, options, TEXT);
}

/** Writes a comparison for a comment on a pull request. */
export function diffMarkdown(comparison: Comparison, options: RenderOptions): string {
  return render(comparison, options, MARKDOWN);
}

function render(comparison: Comparison, options: RenderOptions, marks: Marks): string {
  const { changes, computes, policies } = comparison;
  const changed =
    changes.length === 0
      ? `no change for any compute (of ${computes})`
      : `${changes.length} of ${computes} computes change`;
  return [
    marks.heading(`ebb diff: ${changed}`),
    formatSpan(options, options.zone),
    ...paragraphOf(policyNames(policies, marks), marks),
    ...groupChanges(changes, options.zone).map((group) => groupText(group, marks)),
    ...paragraphOf(notPlannedLines(comparison.notPlanned ?? [], 'not compared'), marks),
    ...paragraphOf(comparison.limiting, marks),
    ...paragraphOf(newWaves(comparison, options), marks),
    ...(changes.length > 0 ? [totals(comparison, marks)] : []),
  ].join('\n\n');
}

function paragraphOf(lines: readonly string[], { line }: Marks): string[] {
  return lines.length === 0 ? [] : [lines.map(line).join('\n')];
}

/** A line for each opening of a window whose waves differ from those under the old policies. */
function newWaves({ readyWaves: { before, after } }: Comparison, span: Span): string[] {
  const old = new Set(waveLines(before, span));
  return waveLines(after, span).filter((line) => !old.has(line));
}

function policyNames({ added, removed, changed }: PolicyNames, { name }: Marks): string[] {
  const lists: [string, string[]][] = [
    ['new', added],
    ['changed', changed],
    ['gone', removed],
  ];
  return lists.flatMap(([what, names]) =>
    names.length === 0 ? [] : [`${names.length === 1 ? 'policy' : 'policies'} ${what}: ${names.map(name).join(', ')}`],
  );
}

function groupText({ members, shared: lines }: Group, marks: Marks): string {
  return [
    marks.group(namesOf(members.map((change) => nameOf(change, marks)))),
    ...lines.flatMap(({ what, when }) =>
      when.length === 1 ? [marks.line(`${what}: ${when[0]}`)] : [marks.line(`${what}:`), ...when.map(marks.detail)],
    ),
    marks.line(`CU-hours: ${hoursOf(members)}`),
  ].join('\n');
}

function nameOf({ compute: { projectName, computeId } }: ComputeChange, { name }: Marks): string {
  return `${name(projectName)} (${computeId})`;
}

function hoursOf(changes: readonly ComputeChange[]): string {
  return fromTo(
    sumOf(changes, ({ before }) => before.cuHours),
    sumOf(changes, ({ after }) => after.cuHours),
  );
}

function fromTo(before: Range, after: Range): string {
  return `${formatRange(before)} → ${formatRange(after)} (${formatRangeChange(differenceOf(after, before))})`;
}

function totals({ hours, dollars, expected, month }: Comparison, { group, line }: Marks): string {
  const change = dollars && formatRangeChange(differenceOf(dollars.after, dollars.before), formatUsd);
  return [
    group('All computes'),
    line(`CU-hours: ${fromTo(hours.before, hours.after)}`),
    line(monthLine(month, expected.before !== null)),
    ...(dollars
      ? [line(`price: ${formatUsdRange(dollars.before)} → ${formatUsdRange(dollars.after)} (${change})`)]
      : []),
  ].join('\n');
}

/** The effect on a month, or why it is unknown. */
function monthLine(month: Comparison['month'], hasUsage: boolean): string {
  if (month?.usd) {
    const { saved, old, new: changed } = month.usd;
    return `it ${savedText(saved)}; the expected cost goes from ${formatUsd(old.mid)} to ${formatUsd(changed.mid)}`;
  }
  return hasUsage
    ? 'a month: price unknown: set plan: in ebb.yaml'
    : 'a month: no usage data (ebb run collects it, --usage reads it)';
}

interface ChangeLine {
  what: string;
  when: string[];
}

type Group = AlikeGroup<ComputeChange, ChangeLine[]>;

/** If there are more days than this, only their number, the first and the last are shown. */
const MAX_DAYS = 7;

/** Groups computes that change in the same way at the same times; the largest group first. */
function groupChanges(changes: readonly ComputeChange[], zone: string): Group[] {
  const groups = groupAlike(changes, ({ differences }) => linesOf(differences, zone));
  return groups.sort((a, b) => b.members.length - a.members.length);
}

function linesOf(differences: readonly Difference[], zone: string): ChangeLine[] {
  const groups = groupAlike(differences, ({ before, after }) => describeValues(before, after));
  return groups.map(({ shared, members }) => ({ what: shared, when: timesOf(members, zone) }));
}

/** `size 0.25-1 → 1-4 CU, suspends after 5m → never`. */
function describeValues(before: ComputeSettings, after: ComputeSettings): string {
  const size = sameSize(before, after) ? [] : [`size ${formatSize(before)} → ${formatSize(after)} CU`];
  const [old, now] = [before, after].map(({ suspendTimeoutSeconds }) => formatSuspendTimeout(suspendTimeoutSeconds));
  return [...size, ...(old === now ? [] : [`suspends after ${old} → ${now}`])].join(', ');
}

/** `07:00–08:00 on Mon 2 Mar, Tue 3 Mar`: changes at the same time of day are listed once. */
function timesOf(differences: readonly Difference[], zone: string): string[] {
  return groupAlike(differences, (one) => timeOfDay(one, zone)).map(({ shared: { text, hasDays }, members }) => {
    if (hasDays) return text;
    return `${text} on ${listDays(members.map(({ fromMs }) => formatDay(fromMs, zone)))}`;
  });
}

/** `07:00–08:00`, or with days if the difference takes a day or longer. */
function timeOfDay({ fromMs, toMs }: Difference, zone: string): { text: string; hasDays: boolean } {
  const [day, lastDay] = [formatDay(fromMs, zone), formatDay(toMs, zone)];
  const [start, end] = [formatTime(fromMs, zone), formatTime(toMs, zone)];
  const hasDays = toMs - fromMs >= DAY_MS && lastDay !== day;
  const text = hasDays ? `from ${day} ${start} to ${lastDay} ${end}` : `${start}–${end === '00:00' ? '24:00' : end}`;
  return { text, hasDays };
}

function listDays(days: readonly string[]): string {
  if (days.length <= MAX_DAYS) return days.join(', ');
  return `${days.length} days, from ${days[0]} to ${days.at(-1)}`;
}
