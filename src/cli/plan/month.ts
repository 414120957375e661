import type { PlanResult } from '../../app/situation/plan.ts';
import { countedComputes } from '../../common/names.ts';
import { type Compute, type ComputeSettings, hasSettings, settingsOf } from '../../domain/compute/compute.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import { subjectOf } from '../../domain/forecast/compute-groups.ts';
import { sum } from '../../domain/sum.ts';
import { forecastWithUsage } from '../forecast/by-past.ts';
import { type MonthChange, monthChange, savedText } from '../forecast/month.ts';
import { lookBack, type PastOutlook, withPast } from '../forecast/past-outlook.ts';
import type { UsageHistoryOptions } from '../forecast/usage-history.ts';
import type { NotPlanned } from '../not-planned.ts';
import { formatNumber } from '../ranges.ts';

interface PlanMonth {
  /** One line. */
  text: string;
  /** The saving of the policies for some of the computes; undefined without usage. */
  savedOf(isIncluded: (compute: Compute) => boolean): MonthChange | undefined;
}

/**
 * Estimates from the last weeks the monthly cost of the plan's computes under the policies, and the saving against their baselines. It does not
 * compare with the present settings, which ebb itself has made: that saving would change its sign with each window.
 */
export async function planMonth(
  planned: Pick<PlanResult, 'plan' | 'situation' | 'projects' | 'takenAtMs' | 'isStored'>,
  options: Pick<UsageHistoryOptions, 'settings' | 'usageFile' | 'operationsFile' | 'fleetFile'> & {
    live?: boolean | undefined;
    /** Computes that the plan leaves out, and the text counts. */
    notPlanned?: readonly NotPlanned[];
  },
): Promise<PlanMonth> {
  const { plan, situation, projects, takenAtMs, isStored } = planned;
  const { policies, computes, records = new Map(), baselines = new Map(), holds = [], nowMs } = situation;
  const unplanned = sum((options.notPlanned ?? []).map((one) => one.computes.length));
  const unplannedText = unplanned === 0 ? '' : ` Without the ${countedComputes(unplanned)} not planned.`;
  if (plan.computes.length === 0) return { text: `A month: no computes.${unplannedText}`, savedOf: () => undefined };
  // For a plan of a later instant, the collected usage still ends now.
  const knownMs = Math.min(nowMs, Date.now());
  const baselineOf = ({ computeId }: Compute) => records.get(computeId)?.baseline ?? baselines.get(computeId);
  const subjectFor = (compute: Compute) =>
    subjectOf(compute, records.get(compute.computeId), { baseline: baselineOf(compute), holds });
  const withoutEbb = (compute: Compute) => baselineOf(compute) ?? settingsOf(compute);
  const differsFromBaselines = plan.computes.some(({ compute }) => !hasSettings(compute, withoutEbb(compute)));
  const past = { ...options, takenAtMs, isStored, computes, projects, nowMs: knownMs };
  const [after = [], before = []] = await forecastWithUsage(past, (known) => {
    const subjects = plan.computes.map(({ compute }) => subjectFor(compute));
    const outlooks = lookBack({ ...known, policies, subjects });
    return [outlooks, outlooks.map((outlook) => withSettings(outlook, withoutEbb(outlook.compute)))];
  });
  return {
    text: `${monthText(monthChange(before, after), after, differsFromBaselines)}${unplannedText}`,
    savedOf: (isIncluded) => {
      const [old, changed] = [before, after].map((all) => all.filter(({ compute }) => isIncluded(compute)));
      return monthChange(old ?? [], changed ?? []);
    },
  };
}

function monthText(
  change: MonthChange | undefined,
  after: readonly PastOutlook[],
  differsFromBaselines: boolean,
): string {
  if (!change) return 'A month: no usage data (ebb run collects it, --usage reads it); ebb forecast shows the bounds.';
  const part =
    change.computes < after.length ? ` (${change.computes} of ${after.length} computes have usage data)` : '';
  const against = differsFromBaselines
    ? 'the baselines (what was set before ebb, or by people since)'
    : 'what is set now';
  return change.usd
    ? `With these policies it ${savedText(change.usd.saved)} against ${against}; the month is then expected to cost ${formatUsd(change.usd.new.mid)}${part}.`
    : `With these policies it ${savedText(change.cuHours, cuHoursText)} against ${against}${part}; price unknown: set plan: in ebb.yaml.`;
}

/** The outlook of a compute that had these settings all the time. */
function withSettings(outlook: PastOutlook, settings: ComputeSettings): PastOutlook {
  const { past } = outlook;
  const [first, last] = [past?.rules[0], past?.rules.at(-1)];
  if (!past || !first || !last) return outlook;
  return withPast(outlook, { ...past, rules: [{ ...settings, fromMs: first.fromMs, toMs: last.toMs }] });
}

function cuHoursText(value: number): string {
  return `${formatNumber(value)} CU-hours`;
}
