import { printable } from '../../common/safe-text.ts';
import { type ComputeSettings, sameSize } from '../../domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import { formatUsd, formatUsdRange } from '../../domain/compute/cost.ts';
import type { Difference } from '../../domain/forecast/forecast.ts';
import type { Span } from '../../domain/time/span.ts';
import { waveLines } from '../forecast/herd-waves.ts';
import { formatDay, formatSpan, formatTime } from '../forecast/local-time.ts';
import { savedText } from '../forecast/month.ts';
import { differenceOf, formatChange, formatHours, type Range } from '../forecast/span.ts';
import { type AlikeGroup, groupAlike, namesOf } from '../group-alike.ts';
import { markdownCode } from '../markdown.ts';
import type { Comparison, ComputeChange, PolicyNames } from './compare.ts';

export interface RenderOptions extends Span {
  zone: string;
}

/** The markup of an output format. */
interface Marks {
  heading(text: string): string;
  group(text: string): string;
  line(text: string): string;
  detail(text: string): string;
  /** Text from outside. */
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

/** The effect of a change of policies, for the terminal. */
export function diffText(comparison: Comparison, options: RenderOptions): string {
  return render(comparison, options, TEXT);
}

/** The comparison as a comment for a pull request. */
export function diffMarkdown(comparison: Comparison, options: RenderOptions): string {
  return render(comparison, options, MARKDOWN);
}

function render(comparison: Comparison, options: RenderOptions, marks: Marks): string {
  const { changes, computes, policies } = comparison;
  const policyLines = policyNames(policies, marks).map(marks.line);
  const changed =
    changes.length === 0
      ? `no change for any compute (of ${computes})`
      : `${changes.length} of ${computes} computes change`;
  return [
    marks.heading(`ebb diff: ${changed}`),
    formatSpan(options, options.zone),
    ...(policyLines.length > 0 ? [policyLines.join('\n')] : []),
    ...groupChanges(changes, options.zone).map((group) => groupText(group, marks)),
    ...paragraphOf(comparison.limiting, marks),
    ...paragraphOf(newWaves(comparison, options), marks),
    ...(changes.length > 0 ? [totals(comparison, marks)] : []),
  ].join('\n\n');
}

function paragraphOf(lines: readonly string[], { line }: Marks): string[] {
  return lines.length === 0 ? [] : [lines.map(line).join('\n')];
}

/** Of herds that begin otherwise than under the old policies. */
function newWaves({ readyWaves: { before, after } }: Comparison, span: Span): string[] {
  const known = new Set(waveLines(before, span));
  return waveLines(after, span).filter((line) => !known.has(line));
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

function groupText({ members, seen: lines }: Group, marks: Marks): string {
  return [
    marks.group(namesOf(members.map((change) => nameOf(change, marks)))),
    ...lines.flatMap(({ what, when: [first, ...others] }) =>
      others.length === 0
        ? [marks.line(`${what}: ${first}`)]
        : [marks.line(`${what}:`), ...[first, ...others].map((time) => marks.detail(String(time)))],
    ),
    marks.line(`CU-hours: ${hoursOf(members)}`),
  ].join('\n');
}

function nameOf({ compute: { projectName, computeId } }: ComputeChange, { name }: Marks): string {
  return `${name(projectName)} (${computeId})`;
}

function hoursOf(changes: readonly ComputeChange[]): string {
  const sum = { before: { low: 0, high: 0 }, after: { low: 0, high: 0 } };
  for (const { before, after } of changes) {
    add(sum.before, before.cuHours);
    add(sum.after, after.cuHours);
  }
  return fromTo(sum.before, sum.after);
}

function add(sum: Range, { low, high }: Range): void {
  sum.low += low;
  sum.high += high;
}

function fromTo(before: Range, after: Range): string {
  return `${formatHours(before)} → ${formatHours(after)} (${formatChange(differenceOf(after, before))})`;
}

function totals({ hours, dollars, expected, month }: Comparison, { group, line }: Marks): string {
  const change = dollars && formatChange(differenceOf(dollars.after, dollars.before), formatUsd);
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
    return `it ${savedText(saved)}: expected ${formatUsd(old.mid)} → ${formatUsd(changed.mid)}`;
  }
  return hasUsage
    ? 'a month: price unknown: set plan: in ebb.yaml'
    : 'a month: no usage data (ebb run collects it, --usage reads it)';
}

interface ChangeLine {
  what: string;
  when: string[];
}

/** Computes that change in the same way at the same times. */
type Group = AlikeGroup<ComputeChange, ChangeLine[]>;

/** Days that are named one by one; of more only the first and their number. */
const MOST_DAYS = 7;

/** Puts computes together that a reader would see as one change; the largest group first. */
export function groupChanges(changes: readonly ComputeChange[], zone: string): Group[] {
  const groups = groupAlike(changes, ({ differences }) => linesOf(differences, zone));
  return groups.sort((a, b) => b.members.length - a.members.length);
}

function linesOf(differences: readonly Difference[], zone: string): ChangeLine[] {
  const byWhat = new Map<string, Difference[]>();
  for (const difference of differences) {
    const what = describeValues(difference.before, difference.after);
    byWhat.set(what, [...(byWhat.get(what) ?? []), difference]);
  }
  return [...byWhat].map(([what, same]) => ({ what, when: timesOf(same, zone) }));
}

/** `size 0.25-1 → 1-4 CU, suspends after 5m → never`. */
function describeValues(before: ComputeSettings, after: ComputeSettings): string {
  const size = sameSize(before, after) ? [] : [`size ${formatSize(before)} → ${formatSize(after)} CU`];
  const [old, now] = [before, after].map(({ suspendTimeoutSeconds }) => formatSuspendTimeout(suspendTimeoutSeconds));
  return [...size, ...(old === now ? [] : [`suspends after ${old} → ${now}`])].join(', ');
}

/** `07:00–08:00 on Mon 2 Mar, Tue 3 Mar`: changes at the same time of day are listed once. */
function timesOf(differences: readonly Difference[], zone: string): string[] {
  const byClock = new Map<string, string[]>();
  for (const { fromMs, toMs } of differences) {
    const day = formatDay(fromMs, zone);
    const ends = formatDay(toMs, zone);
    const long = toMs - fromMs >= 86_400_000 && ends !== day;
    const clock = long
      ? `from ${day} ${formatTime(fromMs, zone)} to ${ends} ${formatTime(toMs, zone)}`
      : clockOf(fromMs, toMs, zone);
    const days = byClock.get(clock) ?? [];
    if (!long) days.push(day);
    byClock.set(clock, days);
  }
  return [...byClock].map(([clock, days]) => (days.length === 0 ? clock : `${clock} on ${listDays(days)}`));
}

function clockOf(fromMs: number, toMs: number, zone: string): string {
  const end = formatTime(toMs, zone);
  return `${formatTime(fromMs, zone)}–${end === '00:00' ? '24:00' : end}`;
}

function listDays(days: readonly string[]): string {
  if (days.length <= MOST_DAYS) return days.join(', ');
  return `${days.length} days, from ${days[0]} to ${days.at(-1)}`;
}
