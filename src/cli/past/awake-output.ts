import type { PastCompute } from '../../app/recommend/past.ts';
import { printable } from '../../common/safe-text.ts';
import { type AwakeFinding, findCause, type Range } from '../../domain/awake/causes.ts';
import { formatUsdRange } from '../../domain/compute/cost.ts';
import { formatDuration } from '../../domain/compute/settings-text.ts';
import { formatHours } from '../forecast/sums.ts';
import { shortened } from '../output.ts';
import type { Past } from './read-past.ts';

const NAME_WIDTH = 40;

/** One finding as `ebb awake --json` shows it. */
export function awakeJson(finding: PricedCause) {
  const { compute, awakeShare, cause, evidence, periodMs, usdMonth, cuHoursMonth, figure, advice } = finding;
  return {
    project_id: compute.projectId,
    compute_id: compute.computeId,
    awake_share: rounded(awakeShare, 4),
    cause,
    evidence,
    ...(periodMs !== undefined && { period_seconds: Math.round(periodMs / 1000) }),
    cu_hours_month: range(cuHoursMonth),
    usd_month: usdMonth === undefined ? null : range(usdMonth),
    figure,
    advice,
  };
}

/** The findings for people, each in three lines. */
export function awakeText(findings: readonly PricedCause[], past: Pick<Past, 'computes'>): string {
  if (past.computes.length === 0) return 'The fleet has no computes.';
  if (findings.length === 0) return 'No compute is awake more than its clients explain, as far as operations tell.';
  const lines = findings.flatMap((finding) => [
    titleOf(finding),
    `    ${finding.evidence.join('; ')}`,
    `    ${finding.advice}`,
  ]);
  const cost = 'a month of 730 h; figures are estimates unless they say "measured"';
  return [...lines, '', `${findings.length} of ${past.computes.length} computes. Cost: ${cost}.`].join('\n');
}

function titleOf({ compute, cause, periodMs, awakeShare, cuHoursMonth, usdMonth, figure }: PricedCause): string {
  const { projectName, computeId } = compute;
  const every = periodMs === undefined ? '' : ` every ${formatDuration(roundedSeconds(periodMs))}`;
  const cost = usdMonth === undefined ? `${formatHours(cuHoursMonth)} CU-hours` : formatUsdRange(usdMonth);
  const name = `${shortened(printable(projectName), NAME_WIDTH)} / ${shortened(printable(computeId), NAME_WIDTH)}`;
  return `${name}: ${cause}${every}, awake ${Math.round(awakeShare * 100)} %, ${cost} a month (${figure})`;
}

/** Whole minutes from ten minutes on: a probe is never exactly on time. */
function roundedSeconds(ms: number): number {
  return ms < 600_000 ? Math.round(ms / 1000) : Math.round(ms / 60_000) * 60;
}

function range({ low, high }: { low: number; high: number }) {
  return { low: rounded(low, 2), high: rounded(high, 2) };
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** A cause with what it costs; without a price the dollars are unknown. */
export interface PricedCause extends AwakeFinding {
  usdMonth: Range | undefined;
}

/** The causes of all computes that have one, the most expensive first. */
export function findCauses(computes: readonly PastCompute[]): PricedCause[] {
  const found = computes.flatMap(({ price, readHistory, ...facts }) => {
    const finding = findCause({ ...facts, history: readHistory() });
    return finding
      ? [{ ...finding, usdMonth: price === undefined ? undefined : priced(finding.cuHoursMonth, price) }]
      : [];
  });
  return found.toSorted((a, b) => middle(b) - middle(a));
}

function priced({ low, high }: Range, price: number): Range {
  return { low: low * price, high: high * price };
}

/** By dollars where all have a price; by CU-hours these are in the same order within an account. */
function middle({ usdMonth, cuHoursMonth }: PricedCause): number {
  const { low, high } = usdMonth ?? cuHoursMonth;
  return low + high;
}
