import { printable } from '../../common/safe-text.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import { type Estimate, inOrder, mapEstimate, savingOrCost } from '../../domain/estimate.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import type { MaybeEstimate } from '../../domain/trial/savings.ts';
import { plainTable } from '../terminal.ts';
import type { DesignReport, SavingsReport } from './report.ts';

export function savingsText(report: SavingsReport): string {
  const { trial, units, effective_units: effective, unit_days: days, unit } = report;
  if (!report.has_begun)
    return [`Trial ${trial} has not begun; starts ${report.starts_on}`, ...leftOutLines(report.left_out)].join('\n');
  const hours = report.unknown_hours === 0 ? '' : `; hours not known: ${report.unknown_hours}`;
  const { control, treated, difference } = report.starts_per_unit_day;
  const starts = control === null || treated === null ? [] : [startsLine(control, treated, difference)];
  return [
    `Trial ${trial}, ${report.from} to ${report.to}: ${verdict(report)}`,
    '',
    ...effectLines(report),
    ...starts,
    ...(report.stopped_at === null ? [] : [`  stopped   ${report.stopped_at}, by stop_if`]),
    `  rests on  ${units} ${unit === 'project' ? 'projects' : 'branches'} (as good as ${effective} of one size), ${days.treated} unit-days with the policies and ${days.control} without${hours}`,
    ...complianceLines(report.compliance),
    ...report.periods_left_out.map(({ from, reason }) => `  left out  the period from ${from}: ${reason}`),
    ...undoLines(report.undos),
    ...changedLines(report.policies_changed),
    ...leftOutLines(report.left_out),
    ...('owners' in report && report.owners ? ['', ownersTable(report.owners)] : []),
  ].join('\n');
}

function verdict({ state, distinguishable, relative, units, unit, left_out: leftOut }: SavingsReport): string {
  if (units === 0 && leftOut.length > 0) return `nothing is counted: every ${unit} is left out.`;
  if (!relative) return 'not measurable with these units and days.';
  if (state === 'stopped') return 'it was ended early because of its cost, so nothing is claimed.';
  if (state === 'interim') return 'interim, so nothing is claimed yet.';
  return distinguishable ? 'the policies have an effect.' : 'the effect is not distinguishable from chance.';
}

/**
 * The saving by the policies, and the cost of the trial, in which some computes go without them. A negative amount changes the word, such as `cost
 * more` for `saved`.
 */
function effectLines({ relative, cu_hours, usd, trial_cost: cost }: SavingsReport): string[] {
  const isNegative = (one: MaybeEstimate) => one !== null && savingOrCost(one).isCost;
  const shown = (one: MaybeEstimate, isNegated: boolean) =>
    one && isNegated ? inOrder(mapEstimate(one, (value) => 0 - value)) : one;
  const [policiesCost, trialSaves] = [isNegative(relative), isNegative(cost.cu_hours)];
  const ofPolicies = amounts({ cu_hours: shown(cu_hours, policiesCost), usd: shown(usd, policiesCost) });
  const ofTrial = amounts({ cu_hours: shown(cost.cu_hours, trialSaves), usd: shown(cost.usd, trialSaves) });
  return [
    `  ${policiesCost ? 'cost more' : 'saved    '} ${share(shown(relative, policiesCost))}${ofPolicies}`,
    `  ${trialSaves ? 'it saved ' : 'its cost '} ${ofTrial.replace(/^, /, '') || 'not measurable'}`,
  ];
}

/** `18.2 % (11.0 to 24.9 %)`. */
function share(range: MaybeEstimate): string {
  if (!range) return 'not measurable';
  const percent = (value: number) => (100 * value).toFixed(1);
  return `${percent(range.mid)} % (${percent(range.low)} to ${percent(range.high)} %)`;
}

function amounts({ cu_hours: hours, usd }: { cu_hours: MaybeEstimate; usd: MaybeEstimate }): string {
  const ofHours = hours ? `, ${number(hours.mid)} CU-hours (${number(hours.low)} to ${number(hours.high)})` : '';
  return usd ? `${ofHours}, ${formatUsd(usd.mid)} (${formatUsd(usd.low)} to ${formatUsd(usd.high)})` : ofHours;
}

function startsLine(control: number, treated: number, difference: MaybeEstimate): string {
  const more = difference
    ? `: ${signed(difference.mid)} (${signed(difference.low)} to ${signed(difference.high)})`
    : '';
  return `  starts    ${treated.toFixed(2)} a unit-day with the policies, ${control.toFixed(2)} without${more}`;
}

function complianceLines({ control, treated }: SavingsReport['compliance']): string[] {
  if (control === null && treated === null) return [];
  const percent = (value: number | null) => (value === null ? 'never seen' : `${(100 * value).toFixed(1)} %`);
  return [`  kept to   ${percent(treated)} of the time with the policies, ${percent(control)} without`];
}

function changedLines(changed: SavingsReport['policies_changed']): string[] {
  if (!changed || changed.length === 0) return [];
  const named = changed
    .slice(0, MAX_NAMED)
    .map(({ at, revision, set_hash: hash }) => `${at} (${printable(revision ?? shortHash(hash))})`);
  const more = changed.length > MAX_NAMED ? `, and ${changed.length - MAX_NAMED} times more` : '';
  return [`  changed   policies, during the trial: ${named.join(', ')}${more}`];
}

/** Lowerings that guards undid. Their computes kept the larger values in either arm of the trial. */
function undoLines(undos: SavingsReport['undos']): string[] {
  const lines = (undos ?? []).slice(0, MAX_NAMED).map(({ message }) => `  undone    ${printable(message)}`);
  const more = (undos ?? []).length - lines.length;
  return more > 0 ? [...lines, `  undone    ${more} more`] : lines;
}

function ownersTable(owners: NonNullable<SavingsReport['owners']>): string {
  const rows = owners.map((one) => [
    printable(one.owner),
    String(one.units),
    String(one.effective_units),
    one.relative ? orCosts(one.relative, share) : 'too few units',
    one.cu_hours ? orCosts(one.cu_hours, ({ mid }) => number(mid)) : '',
    one.usd ? orCosts(one.usd, ({ mid }) => formatUsd(mid)) : '',
  ]);
  return plainTable(['owner', 'units', 'effective', 'saved', 'CU-hours', 'dollars'], rows, ['left', 'right', 'right']);
}

/** A cell in a column of savings; a negative saving is shown as `costs 5.0 %`. */
function orCosts(saving: Estimate, text: (amount: Estimate) => string): string {
  const { isCost, ...amount } = savingOrCost(saving);
  return `${isCost ? 'costs ' : ''}${text(amount)}`;
}

export function designText(report: DesignReport): string {
  const { trial, unit, units, slots, from, until, expected } = report;
  const rows = report.periods.map((period) => [
    period.from,
    String(period.control),
    String(period.flips),
    String(period.sizes),
    String(period.restarts),
  ]);
  const head = ['period from', 'control', 'flips', 'sizes that change', 'added restarts'];
  return [
    `Trial ${trial}, ${from} to ${until}: ${units} ${unit === 'project' ? 'projects' : 'branches'}, in ${slots.length} parts of ${slots.join(', ')}`,
    '',
    plainTable(head, rows, ['left', 'right', 'right', 'right', 'right']),
    '',
    expected
      ? `From ${expected.days} days of usage, as good as ${expected.effective_units} units of one size: if nothing is saved, the interval will be about ± ${(100 * expected.half_width).toFixed(1)} points; a saving of ${(100 * expected.detectable).toFixed(1)} % is found in four of five trials.`
      : 'The smallest detectable saving is not known: that takes the usage of at least two periods (--usage).',
    ...leftOutLines(report.left_out),
  ].join('\n');
}

/** Texts list at most this many entries; JSON has all. */
const MAX_NAMED = 10;

function leftOutLines(leftOut: readonly { unit: string; reason: string }[]): string[] {
  const lines = leftOut.slice(0, MAX_NAMED).map(({ unit, reason }) => `  left out  ${printable(unit)}: ${reason}`);
  return leftOut.length > MAX_NAMED ? [...lines, `  left out  ${leftOut.length - MAX_NAMED} more`] : lines;
}

function number(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 1 });
}

function signed(value: number): string {
  return `${value > 0 ? '+' : ''}${value.toFixed(2)}`;
}
