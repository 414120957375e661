/** Findings that follow from settings, the last use, and measurements while awake. */

import { MONTH_HOURS } from '../awake/causes.ts';
import { awakeShare } from '../awake/intervals.ts';
import { usageWhileAwake, workWhileAwake } from '../awake/usage-while-awake.ts';
import type { Size } from '../compute/compute.ts';
import { COMPUTE_SIZES_CU, formatSize, sizeProblems } from '../compute/compute-units.ts';
import { MAX_USEFUL_RATIO } from '../connections/connection-profile.ts';
import { withMiddle, ZERO } from '../estimate.ts';
import { toHundredths } from '../sum.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { PolicyDraft, RecommendFacts, Unpriced } from './finding.ts';
import { proposeSleep } from './long-timeout.ts';
import { DEFAULT_COLD_START_WORTH_MS } from './timeout.ts';

/** A compute counts as unused after this many days without use. */
const UNUSED_DAYS = 21;
/** A preview branch counts as left over at this age, after this many days without use. */
const [PREVIEW_AGE_DAYS, PREVIEW_UNUSED_DAYS] = [14, 7];
/** Typical names of branches for pull requests. */
const PREVIEW_NAME = /^(preview|pr|pull|review|feature|feat|fix|ci|e2e|test|tmp|temp)[-_/]/i;
/**
 * The monthly price of an additional branch in US dollars; branches included in the plan are free. Source: the vendor's prices, 2026-11.
 */
const BRANCH_USD_MONTH = 1.5;
/** A compute at its minimum in this share of its hours awake has a minimum that may be too large. */
const FLAT_SHARE = 0.98;
/** The least data for findings about sizes. */
const [MIN_AWAKE_HOURS, MIN_DAYS] = [100, 14];
/** The least hours awake if only the usage of a billing period is known. At 1 CU, this is half of what Free includes. */
const MIN_AWAKE_HOURS_BY_PERIOD = 50;
/** A smaller maximum must be this many times the average of the largest hour, since an average hides peaks. */
const PEAK_FACTOR = 4;
/** From this size in CU on, a larger maximum gives no more connections, by the control API's specification. */
const MIN_MAXIMUM_CU = 9;

type Check = (facts: RecommendFacts) => Unpriced | undefined;

/** Proposes a timeout for a compute until it is deleted; empty if none is better. */
function sleepingSooner(facts: RecommendFacts): Pick<Unpriced, 'now' | 'proposed' | 'policy'> {
  const { now, proposed, policy } = proposeSleep(facts, DEFAULT_COLD_START_WORTH_MS) ?? {};
  return { now: now ?? {}, proposed: proposed ?? {}, ...(policy && { policy }) };
}

export const unused: Check = (facts) => {
  const { compute } = facts;
  const days = unusedDays(facts);
  const isUnused = days >= UNUSED_DAYS && compute.lastActiveAtMs !== undefined && !hasRecordedUse(facts);
  if (!isUnused || isPreview(facts)) return undefined;
  return {
    finding: 'unused',
    figure: 'estimate',
    ...sleepingSooner(facts),
    savesCuHours: withMiddle({ low: 0, high: costWhileAwake(facts) }),
    evidence: [`last used ${days} days ago`, `${formatSize(compute)} CU, created ${ageDays(facts)} days ago`],
    risk: 'ask its owner before deleting it: ebb deletes nothing',
  };
};

export const leftOverPreview: Check = (facts) => {
  const days = unusedDays(facts);
  if (!isPreview(facts) || ageDays(facts) < PREVIEW_AGE_DAYS || days < PREVIEW_UNUSED_DAYS) return undefined;
  return {
    finding: 'preview',
    figure: 'estimate',
    ...sleepingSooner(facts),
    savesCuHours: withMiddle({ low: 0, high: costWhileAwake(facts) }),
    savesOtherUsd: withMiddle({ low: 0, high: BRANCH_USD_MONTH }),
    evidence: [`branch ${facts.compute.branchName}, ${ageDays(facts)} days old`, `last used ${days} days ago`],
    risk: 'its pull request may still be open: ebb deletes nothing',
  };
};

/** Proposes half the minimum, or less, if the compute is hardly ever above its minimum and keeps its number of connections. */
export const smallerMinimum: Check = (facts) => {
  const { compute, profile, hours = [] } = facts;
  const { minCu, maxCu } = compute;
  const { flatShare = 0 } = usageWhileAwake(facts);
  if (flatShare < FLAT_SHARE || !hasEnoughData(facts)) return undefined;
  // max_connections may follow this multiple of the minimum, so a smaller minimum must not lower it.
  const smaller = COMPUTE_SIZES_CU.findLast((cu) => cu <= minCu / 2 && MAX_USEFUL_RATIO * cu >= maxCu);
  if (smaller === undefined || sizeProblems({ minCu: smaller, maxCu }).length > 0) return undefined;
  if (profile.maxConnections({ minCu: smaller, maxCu }) < profile.maxConnections(compute)) return undefined;
  const most = (awakeShare(facts.history) ?? 0) * (minCu - smaller) * MONTH_HOURS;
  return {
    finding: 'minimum',
    figure: 'at_least',
    now: { min_cu: minCu },
    proposed: { min_cu: smaller },
    savesCuHours: { low: 0, mid: flatShare * most, high: most },
    evidence: [
      hours.length === 0
        ? `on average at the minimum of ${minCu} CU while awake`
        : `${Math.round(flatShare * 100)} % of its hours at the minimum of ${minCu} CU`,
    ],
    risk: 'work may take longer at a smaller size, and the cache is smaller; the saving is an estimate, nothing is promised',
    policy: fixedSizePolicy({ minCu: smaller, maxCu }),
  };
};

/** Proposes a smaller maximum if usage stays far below the present one and the number of connections stays the same. */
export const smallerMaximum: Check = (facts) => {
  const { compute, profile } = facts;
  const { minCu, maxCu } = compute;
  const peak = largestHour(facts);
  if (peak === undefined || !hasEnoughData(facts)) return undefined;
  const requiredCu = Math.max(PEAK_FACTOR * peak, minCu, MIN_MAXIMUM_CU);
  const smaller = COMPUTE_SIZES_CU.find((cu) => cu >= requiredCu);
  if (smaller === undefined || smaller >= maxCu || sizeProblems({ minCu, maxCu: smaller }).length > 0) return undefined;
  if (profile.maxConnections({ minCu, maxCu: smaller }) < profile.maxConnections(compute)) return undefined;
  return {
    finding: 'maximum',
    figure: 'at_least',
    now: { max_cu: maxCu },
    proposed: { max_cu: smaller },
    savesCuHours: ZERO,
    evidence: [`its largest hour had ${toHundredths(peak)} CU on average, its maximum is ${maxCu}`],
    risk: 'a peak within an hour may need more; it saves nothing now, it limits what a mistake can cost',
    policy: fixedSizePolicy({ minCu, maxCu: smaller }),
  };
};

function fixedSizePolicy(size: Size): PolicyDraft {
  const text = formatSize(size);
  return {
    name: `size-${text.replaceAll('.', '_')}`,
    body: { kind: 'schedule', windows: [{ at: 'always', size: text }], otherwise: 'leave' },
  };
}

function isPreview({ compute }: RecommendFacts): boolean {
  const { branchName = '', branchRoles = [] } = compute;
  return PREVIEW_NAME.test(branchName) && branchRoles.length > 0 && branchRoles.every((role) => role === 'child');
}

/** The whole days since the last known use by clients, or since the compute was created. */
function unusedDays({ compute, history }: RecommendFacts): number {
  const isAwake = history.intervals.at(-1)?.end === 'open' && compute.state === 'active';
  const lastActiveMs = compute.lastActiveAtMs ?? (isAwake ? history.toMs : 0);
  const visit = visitsIn(history).at(-1);
  const lastVisitMs = (visit?.end === 'open' ? visit.startMs : visit?.endMs) ?? 0;
  return Math.floor((history.toMs - Math.max(compute.createdAtMs, lastActiveMs, lastVisitMs)) / DAY_MS);
}

/** True if a client started the compute within its history, or usage shows work in the last weeks. */
function hasRecordedUse({ compute, history, hours = [] }: RecommendFacts): boolean {
  if (visitsIn(history).length > 0) return true;
  const recent = hours.filter(({ startMs }) => startMs >= history.toMs - UNUSED_DAYS * DAY_MS);
  return (workWhileAwake({ compute, hours: recent })?.share ?? 0) > 0;
}

/** The awake intervals that clients caused, not the platform. An interval with an unknown start that ended by timeout counts. */
function visitsIn({ intervals }: RecommendFacts['history']) {
  return intervals.filter(({ start, end }) => start === 'client' || (start === 'unknown' && end === 'timeout'));
}

function ageDays({ compute, history }: RecommendFacts): number {
  return Math.floor((history.toMs - compute.createdAtMs) / DAY_MS);
}

/** The CU-hours per month at the minimum size. */
function costWhileAwake({ compute, history }: RecommendFacts): number {
  return (awakeShare(history) ?? 0) * compute.minCu * MONTH_HOURS;
}

function hasEnoughData({ history, hours = [], period }: RecommendFacts): boolean {
  // A period is one measurement: over so many hours awake, its average at the minimum leaves no room for long peaks.
  if (hours.length === 0 && period) return period.awakeHours >= MIN_AWAKE_HOURS_BY_PERIOD;
  const awakeHours = (awakeShare(history) ?? 0) * hours.length;
  return awakeHours >= MIN_AWAKE_HOURS && history.toMs - history.fromMs >= MIN_DAYS * DAY_MS;
}

/** The average size of the hour with the most usage, assumed to be awake throughout; undefined without measurements. */
function largestHour({ hours }: RecommendFacts): number | undefined {
  const wholeHours = (hours ?? []).filter(({ seconds }) => seconds * 1000 === HOUR_MS);
  if (wholeHours.length === 0) return undefined;
  return wholeHours.reduce((max, { cuSeconds, seconds }) => Math.max(max, (cuSeconds ?? 0) / seconds), 0);
}
