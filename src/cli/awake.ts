import { Command } from 'commander';
import type { PastCompute } from '../app/recommend/facts.ts';
import { printable } from '../common/safe-text.ts';
import { type AwakeFinding, findCause } from '../domain/awake/causes.ts';
import { formatDuration } from '../domain/compute/compute-units.ts';
import { formatUsdRange } from '../domain/compute/cost.ts';
import { mapRange, type Range } from '../domain/estimate.ts';
import { roundTo, toHundredths } from '../domain/sum.ts';
import { MINUTE_MS } from '../domain/time/units.ts';
import { UserError } from './fail.ts';
import { type FilterFlags, filtered, filtersByBranch, selectComputes, withFilterFlags } from './filter.ts';
import { FLAGS, type PastFlags, SELECTED_COMPUTES, withPastFlags } from './flags.ts';
import { jsonText, shortened, writeNotes, writeOut } from './output.ts';
import {
  type AskedCompute,
  type AskFlags,
  askedJson,
  askedLines,
  checkAskFlags,
  withAsked,
  withAskFlags,
} from './past/ask-postgres.ts';
import type { FleetPast } from './past/read-past.ts';
import { formatRange, times } from './ranges.ts';

const EXAMPLES = `
Examples:
  $ ebb awake                                        the last 28 days of the whole fleet
  $ ebb awake 'web-*' --days 60
  $ ebb awake --owner team-web
  $ DATABASE_URL=postgres://… ebb awake --ask-postgres
  $ ebb awake --operations operations.csv --fleet fleet.yaml --usage usage.csv

For each compute that is awake far more than its clients explain: the cause, the evidence, what it costs a month, and what
to do. It only reads, needs neither a daemon nor policies, and wakes no compute. Without clear evidence the cause is
"unknown": --ask-postgres then samples for some minutes which clients keep a compute awake. It needs the direct connection string.
Prices need the plan of the account: "plan: launch" in ebb.yaml. docs/recommend.md explains the causes.
Exit code 0: fine. 1: an error, or a part of the fleet that can't be read.`;

export function awakeCommand(): Command {
  return withAskFlags(withFilterFlags(withPastFlags(new Command('awake'))))
    .argument(...SELECTED_COMPUTES)
    .option(...FLAGS.json)
    .addHelpText('after', EXAMPLES)
    .action(awake);
}

async function awake(names: string[], flags: PastFlags & FilterFlags & AskFlags): Promise<void> {
  const [{ readablePolicies }, { readPast }, { settingsOrFail }] = await Promise.all([
    import('./recommend/facts.ts'),
    import('./past/read-past.ts'),
    import('./or-fail.ts'),
  ]);
  if (flags.askPostgres && flags.operations !== undefined)
    throw new UserError('--ask-postgres needs the API: leave out --operations');
  checkAskFlags(flags);
  const settings = settingsOrFail(flags);
  const policies = flags.owner === undefined ? undefined : (await readablePolicies(settings)).policies;
  const past = await readPast(settings, flags, { readBranches: flags.owner !== undefined || filtersByBranch(flags) });
  const computes = filtered(selectComputes(past.computes, names), flags, { settings, policies });
  writeNotes(past);
  const sources = async () => (policies ?? (await readablePolicies(settings)).policies)?.set.sources;
  const findings = findCauses(await withAsked(computes, { settings, flags, sources }));
  writeOut(`${flags.json ? jsonText(findings.map(awakeJson)) : awakeText(findings, past)}\n`);
}

interface PricedCause extends AwakeFinding {
  usdMonth: Range | undefined;
  past: AskedCompute<PastCompute>;
}

/** The causes of all computes that have one, the most expensive first. */
function findCauses(computes: readonly AskedCompute<PastCompute>[]): PricedCause[] {
  const found = computes.flatMap((past) => {
    const { price, readHistory, ...facts } = past;
    const finding = findCause({ ...facts, history: readHistory() });
    return finding
      ? [{ ...finding, past, usdMonth: price === undefined ? undefined : times(finding.cuHoursMonth, price) }]
      : [];
  });
  return found.toSorted((a, b) => sortKey(b) - sortKey(a));
}

/** The cost of a month. Undefined without a price, as on the free plan: CU-hours are shown instead. */
function paidMonth({ usdMonth, past }: PricedCause): Range | undefined {
  return past.price === 0 ? undefined : usdMonth;
}

/** The sum of both ends of the monthly dollars, or of the CU-hours if there is no price. Either gives the computes of one account the same order. */
function sortKey(finding: PricedCause): number {
  const { low, high } = paidMonth(finding) ?? finding.cuHoursMonth;
  return low + high;
}

const NAME_WIDTH = 40;

function awakeJson(finding: PricedCause) {
  const { compute, awakeShare, cause, evidence, periodMs, usdMonth, cuHoursMonth, figure, advice, past } = finding;
  return {
    project_id: compute.projectId,
    compute_id: compute.computeId,
    awake_share: roundTo(awakeShare, 4),
    cause,
    evidence,
    ...(periodMs !== undefined && { period_seconds: Math.round(periodMs / 1000) }),
    cu_hours_month: mapRange(cuHoursMonth, toHundredths),
    usd_month: usdMonth === undefined ? null : mapRange(usdMonth, toHundredths),
    figure,
    advice,
    ...(past.asked && askedJson(past.asked, past)),
  };
}

function awakeText(findings: readonly PricedCause[], past: Pick<FleetPast, 'computes'>): string {
  if (past.computes.length === 0) return 'The fleet has no computes.';
  if (findings.length === 0) return 'No compute is awake more than its clients explain, as far as operations tell.';
  const lines = findings.flatMap((finding) => [
    titleOf(finding),
    // Clients that are the cause are listed below, with more detail.
    ...(finding.cause === 'clients' ? [] : [`    ${printable(finding.evidence.join('; '))}`]),
    ...(finding.past.asked ? askedLines(finding.past.asked, finding.past).map((line) => `    ${line}`) : []),
    `    ${finding.advice}`,
  ]);
  const cost = 'a month of 730 h; figures are estimates unless they say "measured"';
  return [...lines, '', `${findings.length} of ${past.computes.length} computes. Cost: ${cost}.`].join('\n');
}

function titleOf(finding: PricedCause): string {
  const { compute, cause, periodMs, awakeShare, cuHoursMonth, figure } = finding;
  const usd = paidMonth(finding);
  const { projectName, computeId } = compute;
  const every = periodMs === undefined ? '' : ` every ${formatDuration(roundedSeconds(periodMs))}`;
  const cost = usd === undefined ? `${formatRange(cuHoursMonth)} CU-hours` : formatUsdRange(usd);
  const name = `${shortened(printable(projectName), NAME_WIDTH)} / ${shortened(printable(computeId), NAME_WIDTH)}`;
  return `${name}: ${cause}${every}, awake ${Math.round(awakeShare * 100)} %, ${cost} a month (${figure})`;
}

/** Rounds ten minutes and more to whole minutes, since a probe is never exactly on time. */
function roundedSeconds(ms: number): number {
  return ms < 10 * MINUTE_MS ? Math.round(ms / 1000) : Math.round(ms / MINUTE_MS) * 60;
}
