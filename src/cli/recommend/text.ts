import { counted, countedComputes } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import { formatSaving } from '../../domain/compute/cost.ts';
import { sumEstimates, ZERO } from '../../domain/estimate.ts';
import {
  CHANGE_BY,
  type ChangeBy,
  changeBy,
  changesIn,
  type Finding,
  paidSaving,
} from '../../domain/recommend/finding.ts';
import { markdownCode, markdownTable, markdownText } from '../markdown.ts';
import { shortened } from '../output.ts';
import { formatNumber } from '../ranges.ts';
import { plainTable } from '../terminal.ts';

const NAME_WIDTH = 28;

/** The number of examined computes, and of those among them whose operations could not be read. */
export interface Examined {
  computes: number;
  unread: number;
}

export function recommendText(findings: readonly Finding[], examined?: Examined): string {
  if (findings.length === 0) return nothingFound(examined);
  const shown = findings.filter((finding) => !changesNothing(finding));
  const rows = shown.map((finding) => {
    const { compute, figure } = finding;
    const name = `${shortened(printable(compute.projectName), NAME_WIDTH)}/${shortened(printable(compute.computeId), NAME_WIDTH)}`;
    return [savedText(finding), figure, finding.finding, name, changeText(finding)];
  });
  const table = plainTable(['saves a month', 'figure', 'finding', 'compute', 'change'], rows, ['right']);
  const left = findings.length - shown.length;
  const leftLine = `asleep anyway: ${left} more, saving no CU-hours (--json lists them)`;
  return [
    ...(shown.length === 0 ? [] : [table, '']),
    ...(left === 0 ? [] : [leftLine]),
    ...sumLines(shown),
    ...unreadLines(examined),
  ].join('\n');
}

/** The text if there are no findings. It names unread computes, since little can be found without operations. */
function nothingFound(examined: Examined | undefined): string {
  if (!examined?.unread) return 'Nothing to recommend, as far as operations and settings tell.';
  const { computes, unread } = examined;
  return unread === computes
    ? `Nothing is known yet: ${unreadText(examined)}.`
    : `Nothing to recommend of ${countedComputes(computes - unread)}; of the others nothing is known yet: ${unreadText(examined)}.`;
}

function unreadText({ computes, unread }: Examined): string {
  return `the operations of ${unread} of ${countedComputes(computes)} were not read`;
}

function unreadLines(examined: Examined | undefined): string[] {
  return examined?.unread ? [`more may be found: ${unreadText(examined)}`] : [];
}

/** True for a compute that sleeps, costs nothing and stays as it is: such lines would hide the others. */
function changesNothing({ finding, savesCuHours, policy }: Finding): boolean {
  const isAsleep = savesCuHours.high === 0 && savesCuHours.low === 0;
  return isAsleep && (finding === 'unused' ? policy === undefined : ['timeout', 'never_suspends'].includes(finding));
}

const MAX_SHOWN = 5;

/** A line for each of the findings that may save most. */
export function firstLines(findings: readonly Finding[]): string[] {
  const most = findings.filter(({ savesCuHours }) => savesCuHours.high > 0).slice(0, MAX_SHOWN);
  return most.map((finding) => {
    const name = printable(`${finding.compute.projectName} / ${finding.compute.computeId}`);
    return `${name}: ${finding.finding}, ${changeText(finding)}, ${savedText(finding)} a month (${finding.figure})`;
  });
}

/** The findings for a pull request. Names are code, so that they can't be markup. */
export function recommendMarkdown(findings: readonly Finding[], examined?: Examined): string {
  if (findings.length === 0)
    return examined?.unread
      ? `### ebb recommend: nothing is known yet\n\n${nothingFound(examined)}`
      : '### ebb recommend: nothing to recommend';
  const rows = findings.map((finding) => {
    const { compute, figure, owner, evidence, risk } = finding;
    const name = markdownCode(`${compute.projectName} / ${compute.computeId}`);
    const change = markdownText(changeText(finding));
    const reasons = [...evidence, risk].map(markdownText).join('; ');
    return [savedText(finding), figure, finding.finding, name, markdownCode(owner), change, reasons];
  });
  const head = ['saves a month', 'figure', 'finding', 'compute', 'owner', 'change', 'evidence and risk'];
  return [
    `### ebb recommend: ${counted(findings.length, 'finding')}`,
    '',
    ...markdownTable(head, rows, 'number'),
    '',
    ...[...sumLines(findings), ...unreadLines(examined)].map((line) => `${line}  `),
  ].join('\n');
}

/** A line for each maker of changes and each kind of figure. Kinds promise different things, so they are not added up. */
function sumLines(findings: readonly Finding[]): string[] {
  return CHANGE_BY.flatMap((by) => {
    const changedBy = findings.filter((finding) => changeBy(finding) === by);
    return sumsOf(changedBy).map((line) => `${CHANGE_BY_TITLES[by]}, ${line}`);
  });
}

const CHANGE_BY_TITLES: Readonly<Record<ChangeBy, string>> = {
  proposed_policy: 'with these policies',
  existing_policy: 'by existing policies',
  changed_policy: 'by changing existing policies and holds',
  unread_policy: "unless policies that can't be read set it",
  people: 'only by hand',
};

/** The totals of findings, one line for each figure and unit: findings without a price are totalled in CU-hours. */
function sumsOf(findings: readonly Finding[]): string[] {
  return (['at_least', 'replayed', 'estimate', 'measured'] as const).flatMap((figure) => {
    const ofFigure = findings.filter((one) => one.figure === figure);
    const priced = ofFigure.filter((one) => paidSaving(one));
    const others = ofFigure.filter((one) => !paidSaving(one));
    const usd = formatSaving(sumEstimates(priced.map((one) => paidSaving(one) ?? ZERO)));
    const cuHours = formatSaving(sumEstimates(others.map(({ savesCuHours }) => savesCuHours)), formatNumber);
    const unpriced = `${figure}: ${counted(others.length, 'finding')}${priced.length > 0 ? ' without a price' : ''}`;
    return [
      ...(priced.length > 0 ? [`${figure}: ${counted(priced.length, 'finding')}, ${usd} a month`] : []),
      ...(others.length > 0 ? [`${unpriced}, ${cuHours} CU-hours a month`] : []),
    ];
  });
}

/** The expected monthly saving and its range, in dollars if hours are paid and the price is known. */
export function savedText(finding: Finding): string {
  const usd = paidSaving(finding);
  return usd ? formatSaving(usd) : `${formatSaving(finding.savesCuHours, formatNumber)} CUh`;
}

/** The proposed change, for an unused compute with its last use. If no change is proposed, the first two pieces of evidence. */
export function changeText({ finding, now, proposed, evidence, doneBy, setBy, mayBeSetBy }: Finding): string {
  const changes = [
    ...changesIn({ now, proposed }),
    ...(doneBy === undefined ? [] : [`done by ${doneBy}`]),
    ...(setBy === undefined ? [] : [`set by ${setBy}: change it there`]),
    ...(mayBeSetBy === undefined ? [] : [`may be set by ${mayBeSetBy}`]),
  ];
  if (changes.length === 0) return printable(evidence.slice(0, 2).join(': '));
  return printable([...changes, ...(finding === 'unused' ? evidence.slice(0, 1) : [])].join(', '));
}
