import type { PlanResult } from '../../app/situation/plan.ts';
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { expectedCuHours, widestSettings } from '../../domain/forecast/expected.ts';
import { unchangedCuHours } from '../../domain/forecast/forecast.ts';
import { WEEK_MS } from '../../domain/time/units.ts';
import type { Settings } from '../../settings/settings.ts';
import { readUsageProfiles } from '../forecast/known-usage.ts';
import { changeText, monthChange, monthCuHoursChange } from '../forecast/month.ts';
import { foresee, type Outlook } from '../forecast/outlook.ts';

/** The monthly cost or saving of the policies against leaving the plan's computes as they are, in one line: from the week after it. */
export async function planMonth(
  { plan, situation, projects }: Pick<PlanResult, 'plan' | 'situation' | 'projects'>,
  { settings, ...files }: { settings: Settings; usageFile: string | undefined; fleetFile: string | undefined },
): Promise<string> {
  const { policies, computes, records = new Map(), baselines = new Map(), holds = [], nowMs } = situation;
  if (plan.computes.length === 0) return 'A month: no computes.';
  // Also for a plan of a later instant: what daemons have collected until now is not outdated then.
  const knownMs = Math.min(nowMs, Date.now());
  const profiles = await readUsageProfiles({ settings, ...files, computes, projects, nowMs: knownMs });
  const span = { fromMs: nowMs, toMs: nowMs + WEEK_MS };
  const subjectOf = (compute: Compute): ForecastSubject => {
    const {
      baseline = baselines.get(compute.computeId),
      trials,
      lastDisruption,
    } = records.get(compute.computeId) ?? {};
    return { compute, baseline, trials, lastDisruption, holds };
  };
  const subjects = plan.computes.map(({ compute }) => subjectOf(compute));
  const after = foresee({
    ...span,
    policies,
    subjects,
    fleet: computes.map(subjectOf),
    disruption: settings.disruption,
    pricing: settings,
    profiles,
  });
  const before = after.map((outlook, index): Outlook => {
    const now = settingsOf(outlook.compute);
    const had = widestSettings(now, subjects[index]?.baseline ?? now);
    const profile = outlook.expected ? profiles.get(outlook.compute.computeId) : undefined;
    const segments = [{ ...now, ...span, policies: [] }];
    const cuHours = unchangedCuHours({ ...now, disabled: outlook.compute.disabled }, span);
    return { ...outlook, segments, cuHours, expected: profile ? expectedCuHours(segments, profile, had) : null };
  });
  const month = monthChange(before, after, span);
  const known = after.filter(({ expected }) => expected !== null).length;
  const part = known < after.length ? ` (${known} of ${after.length} computes have usage data)` : '';
  if (month) {
    return `With these policies it ${changeText(month.delta)} against leaving all as it is now: expected ${formatUsd(month.new.mid)}${part}.`;
  }
  const cuHours = monthCuHoursChange(before, after, span);
  return cuHours
    ? `With these policies it ${changeText(cuHours, cuHoursText)} against leaving all as it is now${part}; price unknown: set plan: in ebb.yaml.`
    : 'A month: no usage data (ebb run collects it, --usage reads it); ebb forecast shows the bounds.';
}

function cuHoursText(value: number): string {
  return `${value.toLocaleString('en', { maximumFractionDigits: value < 1000 ? 1 : 0 })} CU-hours`;
}
