/** Findings that follow from settings, the last use, and measurements while awake. */

import { MONTH_HOURS, type Range } from '../awake/causes.ts';
import { awakeShare } from '../awake/intervals.ts';
import { usageWhileAwake } from '../awake/usage-while-awake.ts';
import { DEFAULT_SUSPEND_TIMEOUT_SECONDS, NEVER_SUSPENDS } from '../compute/compute.ts';
import { COMPUTE_SIZES_CU, formatSize, maySleep, sizeProblems } from '../compute/compute-units.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { PolicyDraft, RecommendFacts, Unpriced } from './finding.ts';

const UNUSED_DAYS = 21;
const PREVIEW_AGE_DAYS = 14;
const PREVIEW_UNUSED_DAYS = 7;
/** Typical names of branches for pull requests. */
const PREVIEW_NAME = /^(preview|pr|pull|review|feature|feat|fix|ci|e2e|test|tmp|temp)[-_/]/i;
/**
 * The monthly price of an additional branch in US dollars; branches included in the plan are free. Source: the vendor's prices, 2026-11.
 */
const BRANCH_USD_MONTH = 1.5;
/** The share of hours at the minimum, and the amount of data, from which on the minimum counts as too large. */
const FLAT_SHARE = 0.98;
const MIN_AWAKE_HOURS = 100;
const MIN_DAYS = 14;
/** A smaller maximum must be this many times the average of the largest hour, since an average hides peaks. */
const PEAK_FACTOR = 4;
/** From this size in CU on, a larger maximum gives no more connections. */
const MIN_MAXIMUM_CU = 9;

type Check = (facts: RecommendFacts) => Unpriced | undefined;

/** A draft of limits that let a compute sleep after this time. */
export function sleepAfter(text: string): PolicyDraft {
  return { name: `sleep-after-${text}`, body: { kind: 'limits', suspend_after: { max: text } } };
}

/** True if the plan allows changes of the timeout. Free has a fixed one: changes are answered with 412. */
export function maySetTimeout({ plan }: Pick<RecommendFacts, 'plan'>): boolean {
  return plan !== 'free';
}

/** Reports a compute that never suspends although it is often idle. */
export const neverSuspends: Check = (facts) => {
  const { compute } = facts;
  const awake = awakeShare(facts.history) ?? (compute.state === 'active' ? 1 : 0);
  if (!mayBeLetSleep(facts)) return undefined;
  const { flatShare } = usageWhileAwake(facts);
  if ((flatShare ?? 1) < 0.2) return undefined;
  const measured = flatShare === undefined ? [] : [`${Math.round(flatShare * 100)} % of its hours at the minimum`];
  return {
    ...{ finding: 'never_suspends', figure: 'estimate' },
    now: { suspend_timeout_seconds: NEVER_SUSPENDS },
    proposed: { suspend_timeout_seconds: DEFAULT_SUSPEND_TIMEOUT_SECONDS },
    savesCuHours: { low: 0, high: awake * (flatShare ?? 1) * compute.minCu * MONTH_HOURS },
    evidence: ['its timeout is "never"', ...measured],
    risk: 'the first visit after a pause waits for a start; sessions that must stay, such as replication, keep it awake anyway',
    policy: sleepAfter('5m'),
  };
};

/** True if the compute never suspends because of its timeout alone, and the plan allows another one. */
function mayBeLetSleep(facts: RecommendFacts): boolean {
  const { compute } = facts;
  const isNever = compute.suspendTimeoutSeconds === NEVER_SUSPENDS;
  return (
    isNever && maySetTimeout(facts) && maySleep({ ...compute, suspendTimeoutSeconds: DEFAULT_SUSPEND_TIMEOUT_SECONDS })
  );
}

/** Proposes that a compute sleeps until it is deleted; empty if it does so already. */
function sleepingIfNever(facts: RecommendFacts): Pick<Unpriced, 'now' | 'proposed' | 'policy'> {
  if (!mayBeLetSleep(facts)) return { now: {}, proposed: {} };
  return {
    now: { suspend_timeout_seconds: NEVER_SUSPENDS },
    proposed: { suspend_timeout_seconds: DEFAULT_SUSPEND_TIMEOUT_SECONDS },
    policy: sleepAfter('5m'),
  };
}

/** Reports a compute that has been unused for weeks. */
export const unused: Check = (facts) => {
  const days = unusedDays(facts);
  if (days === undefined || days < UNUSED_DAYS || isPreview(facts)) return undefined;
  const { compute } = facts;
  return {
    ...{ finding: 'unused', figure: 'estimate', ...sleepingIfNever(facts) },
    savesCuHours: { low: 0, high: costWhileAwake(facts) },
    evidence: [`last used ${days} days ago`, `${formatSize(compute)} CU, created ${ageDays(facts)} days ago`],
    risk: 'ask its owner before deleting it: ebb deletes nothing',
  };
};

/** Reports a leftover branch of a pull request. */
export const leftOverPreview: Check = (facts) => {
  const days = unusedDays(facts) ?? 0;
  if (!isPreview(facts) || ageDays(facts) < PREVIEW_AGE_DAYS || days < PREVIEW_UNUSED_DAYS) return undefined;
  return {
    ...{ finding: 'preview', figure: 'estimate', ...sleepingIfNever(facts) },
    savesCuHours: { low: 0, high: costWhileAwake(facts) },
    savesOtherUsd: { low: 0, high: BRANCH_USD_MONTH },
    evidence: [`branch ${facts.compute.branchName}, ${ageDays(facts)} days old`, `last used ${days} days ago`],
    risk: 'its pull request may still be open: ebb deletes nothing',
  };
};

/** Proposes half the minimum, or less, if the compute is hardly ever above its minimum and keeps its number of connections. */
export const smallerMinimum: Check = (facts) => {
  const { compute, profile } = facts;
  const { minCu, maxCu } = compute;
  const { flatShare } = usageWhileAwake(facts);
  if ((flatShare ?? 0) < FLAT_SHARE || !hasEnoughData(facts)) return undefined;
  const smaller = COMPUTE_SIZES_CU.findLast((cu) => cu <= minCu / 2 && 8 * cu >= maxCu);
  if (smaller === undefined || sizeProblems({ minCu: smaller, maxCu }).length > 0) return undefined;
  if (profile.maxConnections({ minCu: smaller, maxCu }) < profile.maxConnections(compute)) return undefined;
  const awake = awakeShare(facts.history) ?? 0;
  return {
    ...{ finding: 'minimum', figure: 'at_least', now: { min_cu: minCu }, proposed: { min_cu: smaller } },
    savesCuHours: { low: 0, high: awake * (minCu - smaller) * MONTH_HOURS },
    evidence: [`${Math.round((flatShare ?? 0) * 100)} % of its hours at the minimum of ${minCu} CU`],
    risk: 'work may take longer at a smaller size, and the cache is smaller; the saving is an estimate, nothing is promised',
    policy: fixedSizePolicy({ minCu: smaller, maxCu }),
  };
};

/** Proposes a smaller maximum if the present one is never nearly reached and the number of connections stays the same. */
export const smallerMaximum: Check = (facts) => {
  const { compute, profile } = facts;
  const peak = largestHour(facts);
  if (peak === undefined || !hasEnoughData(facts)) return undefined;
  const requiredCu = Math.max(PEAK_FACTOR * peak, compute.minCu, MIN_MAXIMUM_CU);
  const smaller = COMPUTE_SIZES_CU.find((cu) => cu >= requiredCu);
  const { minCu, maxCu } = compute;
  if (smaller === undefined || smaller >= maxCu || sizeProblems({ minCu, maxCu: smaller }).length > 0) return undefined;
  if (profile.maxConnections({ minCu, maxCu: smaller }) < profile.maxConnections(compute)) return undefined;
  return {
    ...{ finding: 'maximum', figure: 'at_least', now: { max_cu: maxCu }, proposed: { max_cu: smaller } },
    savesCuHours: all(0),
    evidence: [`its largest hour had ${Math.round(peak * 100) / 100} CU on average, its maximum is ${maxCu}`],
    risk: 'a peak within an hour may need more; it saves nothing now, it limits what a mistake can cost',
    policy: fixedSizePolicy({ minCu, maxCu: smaller }),
  };
};

function fixedSizePolicy(size: { minCu: number; maxCu: number }): PolicyDraft {
  const text = formatSize(size);
  return {
    name: `size-${text.replaceAll('.', '_')}`,
    body: { kind: 'schedule', windows: [{ at: 'always', size: text }], otherwise: 'leave' },
  };
}

function isPreview({ compute }: RecommendFacts): boolean {
  const { branchName = '', branchRoles = [] } = compute;
  return (
    PREVIEW_NAME.test(branchName) && branchRoles.includes('child') && !branchRoles.some((role) => role !== 'child')
  );
}

/** The whole days since the last use; undefined if the compute is in use, or nothing is known. */
function unusedDays({ compute, history }: RecommendFacts): number | undefined {
  const lastMs =
    compute.lastActiveAtMs ?? history.asleepSinceMs ?? (compute.state === 'idle' ? compute.createdAtMs : undefined);
  return lastMs === undefined ? undefined : Math.floor((history.toMs - lastMs) / DAY_MS);
}

function ageDays({ compute, history }: RecommendFacts): number {
  return Math.floor((history.toMs - compute.createdAtMs) / DAY_MS);
}

/** The CU-hours per month at the minimum size. */
function costWhileAwake({ compute, history }: RecommendFacts): number {
  return (awakeShare(history) ?? 0) * compute.minCu * MONTH_HOURS;
}

function hasEnoughData({ history, hours = [] }: RecommendFacts): boolean {
  const awakeHours = (awakeShare(history) ?? 0) * hours.length;
  return awakeHours >= MIN_AWAKE_HOURS && history.toMs - history.fromMs >= MIN_DAYS * DAY_MS;
}

/** The average size of the hour with the most usage, assumed to be awake throughout; undefined without measurements. */
function largestHour({ hours }: RecommendFacts): number | undefined {
  const whole = (hours ?? []).filter(({ seconds }) => seconds * 1000 === HOUR_MS);
  if (whole.length === 0) return undefined;
  return whole.reduce((most, { cuSeconds, seconds }) => Math.max(most, (cuSeconds ?? 0) / seconds), 0);
}

function all(value: number): Range {
  return { low: value, high: value };
}
