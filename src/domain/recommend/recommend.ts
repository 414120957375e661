import { findCause, MONTH_HOURS } from '../awake/causes.ts';
import { historyFrom } from '../awake/intervals.ts';
import { averageUseCu } from '../awake/usage-while-awake.ts';
import { type ComputeSettings, hasSettings, settingsOf } from '../compute/compute.ts';
import { formatSuspendTimeout } from '../compute/compute-units.ts';
import { type Estimate, mapEstimate, mapRange, withMiddle, ZERO } from '../estimate.ts';
import { HOUR_MS, WEEK_MS } from '../time/units.ts';
import {
  causeOf,
  type Fields,
  type Finding,
  type RecommendFacts,
  sleepAfter,
  stayAwake,
  type Unpriced,
  withProposed,
} from './finding.ts';
import { hasLongTimeout, proposeSleep } from './long-timeout.ts';
import { savingBetween, savingOf } from './saving.ts';
import { leftOverPreview, smallerMaximum, smallerMinimum, unused } from './simple.ts';
import { DEFAULT_COLD_START_WORTH_MS, proposeTimeout } from './timeout.ts';
import { tooSmall } from './too-small.ts';
import type { HolidaysOf } from './windows.ts';

type Check = (facts: RecommendFacts, options: RecommendOptions) => Unpriced | undefined;

export interface RecommendOptions {
  /** The cost of a cold start, expressed in milliseconds awake, instead of that of each compute. */
  coldStartWorthMs?: number;
  /** Looks up public holidays; if absent, no calendar is proposed. */
  holidaysOf?: HolidaysOf;
}

/** All recommendations for a fleet, the largest saving first. Each field of a compute is proposed at most once. */
export function recommend(fleet: Iterable<RecommendFacts>, options: RecommendOptions = {}): Finding[] {
  const findings: Finding[] = [];
  for (const facts of fleet) findings.push(...findingsOf(facts, options));
  return findings.toSorted((a, b) => expectedSaving(b) - expectedSaving(a));
}

/** The findings for one compute: at most one about its time awake, so that no time is saved twice, and at most one about its size. */
export function findingsOf(facts: RecommendFacts, options: RecommendOptions = {}): Finding[] {
  const factsSinceTimeout = withoutOtherTimeouts(facts);
  const timeFinding = firstOf(DELETION_CHECKS, facts, options) ?? firstOf(AWAKE_CHECKS, factsSinceTimeout, options);
  const sizeFinding =
    timeFinding && DELETION_KINDS.includes(timeFinding.finding) ? undefined : firstOf(SIZE_CHECKS, facts, options);
  const harm = tooSmall(facts);
  const isHarmOfSize = harm?.proposed.max_cu !== undefined;
  // What a guard has taken back is not proposed again.
  const found = [isHarmOfSize || !harm ? timeFinding : undefined, harm, isHarmOfSize ? undefined : sizeFinding].filter(
    (one) => one !== undefined,
  );
  const { fromMs, toMs } = factsSinceTimeout.history;
  // Less than a week does not show the rate of a month.
  const factsOfMonth = toMs - fromMs < WEEK_MS ? facts : factsSinceTimeout;
  return withSavings(found, factsOfMonth).map((one) => withPrice(withoutContradiction(one, facts), facts));
}

/** The facts since the timeout was last changed: before, the compute slept by another one. */
function withoutOtherTimeouts(facts: RecommendFacts): RecommendFacts {
  const { timeoutSinceMs, history } = facts;
  return timeoutSinceMs === undefined ? facts : { ...facts, history: historyFrom(history, timeoutSinceMs) };
}

/**
 * Computes the savings of constant settings by `savingOf`, so that plans, diffs and findings agree. A second finding has only the saving that it
 * adds to the first: the sum is the saving of both together. Windows, and findings that propose no setting, keep their own savings.
 */
function withSavings(found: readonly Unpriced[], facts: RecommendFacts): Unpriced[] {
  const { compute, history, hours } = facts;
  const had = settingsOf(compute);
  const last = hours?.at(-1);
  const span = { fromMs: history.fromMs, toMs: last ? last.startMs + HOUR_MS : history.toMs };
  const savedBy = (settings: ComputeSettings) =>
    savingOf({
      evidence: { compute, had, hours, history },
      rules: [{ ...settings, ...span }],
      priceAt: () => undefined,
    })?.month.saved;
  const constant = found.filter(
    ({ finding, proposed }) => !['window', 'guard'].includes(finding) && Object.keys(proposed).length > 0,
  );
  const changed = constant.reduce<ComputeSettings>((settings, { proposed }) => withProposed(settings, proposed), had);
  const [none, total] = [savedBy(had), savedBy(changed)];
  const [first, second] = constant;
  if (!first || !none || !total) return found.map((one) => withinMeasured(one, facts));
  const afterFirst = second ? (savedBy(withProposed(had, first.proposed)) ?? total) : total;
  const savings = new Map([
    [first, savingBetween(none, afterFirst)],
    ...(second ? [[second, savingBetween(afterFirst, total)] as const] : []),
  ]);
  return found.map((one) => {
    const saving = savings.get(one);
    return saving
      ? { ...one, savesCuHours: mapEstimate(saving.cuSeconds, (value) => value / 3600) }
      : withinMeasured(one, facts);
  });
}

function firstOf(checks: readonly Check[], facts: RecommendFacts, options: RecommendOptions): Unpriced | undefined {
  return checks.reduce<Unpriced | undefined>((found, check) => found ?? check(facts, options), undefined);
}

/** The value that findings are ranked by: the expected saving in dollars. In CU-hours if dollars are unknown, or 0 as on the free plan. */
export function expectedSaving({ savesUsd, savesCuHours }: RankedSaving): number {
  return savesUsd?.mid || savesCuHours.mid;
}

interface RankedSaving {
  savesUsd?: Estimate | undefined;
  savesCuHours: Estimate;
}

const sleepAtAllOrSooner: Check = (facts, options) => proposeSleep(facts, startWorthMs(facts, options));

function startWorthMs(facts: RecommendFacts, options: RecommendOptions): number {
  return options.coldStartWorthMs ?? facts.coldStartWorthMs ?? DEFAULT_COLD_START_WORTH_MS;
}

const betterTimeout: Check = (facts, options) => {
  const { compute, history, plan } = facts;
  const { suspendTimeoutSeconds, regionId } = compute;
  if (hasLongTimeout(facts)) return undefined;
  const found = proposeTimeout({
    history,
    suspendTimeoutSeconds,
    plan,
    regionId,
    holidaysOf: options.holidaysOf,
    coldStartWorthMs: startWorthMs(facts, options),
  });
  if (!found) return undefined;
  const { suspendTimeoutSeconds: seconds, knownMs, figure, windows } = found;
  const perMonth = (value: number) => (value / knownMs) * MONTH_HOURS * HOUR_MS;
  const share = (ms: number) => ms / knownMs;
  // While waiting for its timeout the compute is idle, at its minimum size.
  const cuHours = (ms: number) => (perMonth(ms) / HOUR_MS) * compute.minCu;
  const text = formatSuspendTimeout(seconds);
  return {
    finding: windows ? 'window' : 'timeout',
    figure,
    now: { suspend_timeout_seconds: suspendTimeoutSeconds },
    proposed: { suspend_timeout_seconds: seconds },
    savesCuHours: mapEstimate(found.savedMs, cuHours),
    startsMonth: { before: perMonth(found.starts.before), after: mapRange(found.starts.after, perMonth) },
    awakeShare: { before: share(found.awakeMs.before), after: mapRange(found.awakeMs.after, share) },
    evidence: [
      ...(windows ? [windows.text] : []),
      `${found.gaps} pauses in ${Math.round(knownMs / 24 / HOUR_MS)} days`,
      ...causeOf(facts),
    ],
    risk:
      figure === 'at_least'
        ? 'it may start more often: clients wait for a start after shorter pauses'
        : 'it is awake longer, and starts less often',
    policy: windows?.policy ?? (figure === 'replayed' ? stayAwake(text) : sleepAfter(text)),
  };
};

/** Reports causes of awake time that no policy removes. */
const otherCause: Check = (facts) => {
  const found = findCause(facts);
  if (!found || ['never_suspends', 'busy'].includes(found.cause)) return undefined;
  return {
    finding: 'awake',
    figure: found.figure,
    now: {},
    proposed: {},
    // Until somebody knows what keeps it awake, nothing is expected.
    savesCuHours:
      found.cause === 'unknown' ? { low: 0, mid: 0, high: found.cuHoursMonth.high } : withMiddle(found.cuHoursMonth),
    evidence: [found.cause, ...found.evidence],
    risk: found.advice,
  };
};

const DELETION_CHECKS: readonly Check[] = [leftOverPreview, unused];
const AWAKE_CHECKS: readonly Check[] = [sleepAtAllOrSooner, betterTimeout, otherCause];
const SIZE_CHECKS: readonly Check[] = [smallerMinimum, smallerMaximum];
/** Findings that suggest deletion; the size of such computes does not matter. */
const DELETION_KINDS = ['preview', 'unused'];

/**
 * Drops the policy draft if a policy or hold already decides the field: that one will make the change anyway, or must be changed instead. Policies
 * that allow both the present and the proposed value, as limits may, do not decide the field.
 */
function withoutContradiction(found: Unpriced, facts: RecommendFacts): Unpriced {
  const { compute, decided = {}, wanted, unreadDecider } = facts;
  // The policy of a guard's finding takes precedence over the one that decides now.
  if (found.finding === 'guard') return found;
  const decider =
    ('suspend_timeout_seconds' in found.proposed && decided.suspend_timeout) ||
    (('min_cu' in found.proposed || 'max_cu' in found.proposed) && decided.size);
  if (!decider) return found;
  const { policy: _draft, ...rest } = found;
  const present = settingsOf(compute);
  // Policies may have other windows than the proposed ones.
  const coming = found.finding === 'window' ? [] : wanted?.(present);
  if (allHave(coming, found.proposed)) return { ...rest, doneBy: decider };
  if (decider === unreadDecider)
    return { ...rest, mayBeSetBy: decider, evidence: [...found.evidence, `${decider} may set this`] };
  const isLeft = () => allHave(wanted?.(withProposed(present, found.proposed)), found.proposed);
  if (allHave(coming, found.now) && isLeft()) return found;
  return { ...rest, setBy: decider, evidence: [...found.evidence, `${decider} decides this: change it there`] };
}

/** True if there are settings, and all of them have the fields' values. */
function allHave(coming: readonly ComputeSettings[] = [], fields: Fields): boolean {
  return coming.length > 0 && coming.every((settings) => hasSettings(settings, withProposed(settings, fields)));
}

/** Limits the saving to the measured usage of the compute; for the finding `never_suspends`, to that since its last start. */
function withinMeasured(found: Unpriced, facts: RecommendFacts): Unpriced {
  const { hours, history } = facts;
  const sinceMs = found.finding === 'never_suspends' ? (history.intervals.at(-1)?.startMs ?? history.toMs) : 0;
  const measured = { hours: (hours ?? []).filter(({ startMs }) => startMs >= sinceMs), history };
  const maxCuHours = (averageUseCu(measured) ?? Number.POSITIVE_INFINITY) * MONTH_HOURS;
  return { ...found, savesCuHours: mapEstimate(found.savesCuHours, (cuHours) => Math.min(cuHours, maxCuHours)) };
}

function withPrice(found: Unpriced, { compute, owner, price }: RecommendFacts): Finding {
  if (price === undefined) return { ...found, compute, owner };
  const { savesCuHours: hours, savesOtherUsd: other = ZERO } = found;
  const usd = (end: keyof Estimate) => hours[end] * price + other[end];
  const priced = { ...found, compute, owner, savesUsd: { low: usd('low'), mid: usd('mid'), high: usd('high') } };
  return price === 0 && other.high === 0 ? { ...priced, isFree: true } : priced;
}
