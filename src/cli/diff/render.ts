import { printable } from '../../common/safe-text.ts';
import type { Span } from '../../domain/forecast/forecast.ts';
import { formatSpan } from '../forecast/local-time.ts';
import { differenceOf, formatChange, formatDollar, formatDollars, formatHours, type Range } from '../forecast/sums.ts';
import type { Comparison, ComputeChange, PolicyNames } from './compare.ts';
import { type Group, groupChanges } from './group.ts';

export interface RenderOptions extends Span {
  zone: string;
}

/** How a way of writing marks its parts. */
interface Marks {
  heading(text: string): string;
  group(text: string): string;
  line(text: string): string;
  detail(text: string): string;
  /** Text from outside. */
  name(text: string): string;
}

/** Computes of a group that are named; of more only their number. */
const MOST_NAMES = 8;

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
  // A backtick would end the code, a line break the item; `printable` leaves no line break.
  name: (text) => `\`${printable(text).replaceAll('`', "'").replaceAll('|', '/')}\``,
};

/** What a change of policies does, for the terminal. */
export function diffText(comparison: Comparison, options: RenderOptions): string {
  return render(comparison, options, TEXT);
}

/** The same as a comment for a pull request. */
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
    ...(changes.length > 0 ? [totals(comparison, marks)] : []),
  ].join('\n\n');
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

function groupText({ changes, lines }: Group, marks: Marks): string {
  const named = changes.slice(0, MOST_NAMES).map((change) => nameOf(change, marks));
  const more = changes.length > MOST_NAMES ? `, and ${changes.length - MOST_NAMES} more` : '';
  const head = changes.length === 1 ? (named[0] ?? '') : `${changes.length} computes: ${named.join(', ')}${more}`;
  return [
    marks.group(head),
    ...lines.flatMap(({ what, when: [first, ...others] }) =>
      others.length === 0
        ? [marks.line(`${what}: ${first}`)]
        : [marks.line(`${what}:`), ...[first, ...others].map((time) => marks.detail(String(time)))],
    ),
    marks.line(`CU-hours: ${hoursOf(changes)}`),
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

function totals({ hours, dollars }: Comparison, { group, line }: Marks): string {
  const change = dollars && formatChange(differenceOf(dollars.after, dollars.before), formatDollar);
  return [
    group('All computes'),
    line(`CU-hours: ${fromTo(hours.before, hours.after)}`),
    ...(dollars ? [line(`price: ${formatDollars(dollars.before)} → ${formatDollars(dollars.after)} (${change})`)] : []),
  ].join('\n');
}
