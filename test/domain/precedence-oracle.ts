import type { Compute, ComputeSettings, Size } from '../../src/domain/compute/compute.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { SelectorKeys } from '../../src/domain/policy/selector.ts';
import { slowDecide } from './decide-oracle.ts';
import type { SlowWindows } from './windows-oracle.ts';

/**
 * The obvious implementation of which policies count for a compute and in which order, as docs/policies.md says it. Truth is a number:
 * 0 no, 1 yes, ½ not known; "and" is the least, "or" the greatest.
 */
type Truth = 0 | 0.5 | 1;

const and = (...truths: readonly Truth[]) => Math.min(1, ...truths) as Truth;
const or = (...truths: readonly Truth[]) => Math.max(0, ...truths) as Truth;
const not = (truth: Truth) => (1 - truth) as Truth;
const truthOf = (isSo: boolean) => (isSo ? 1 : 0) as Truth;

/** Whether a selector selects a compute, whose facts may be missing. */
export function slowSelection(selector: SelectorKeys, compute: Compute, nowMs: number): Truth {
  const { accounts, projects, branches, computes, regions, types, branchRoles, minAgeMs } = selector;
  const projectName = compute.projectNameUnknown ? undefined : compute.projectName;
  return and(
    listed(accounts, [compute.account]),
    listed(projects, [compute.projectId, projectName]),
    listed(branches, [compute.branchId, compute.branchName]),
    listed(computes, [compute.computeId]),
    listed(regions, [compute.regionId]),
    types ? or(...types.map((type) => truthOf(type === compute.type))) : 1,
    branchRoles
      ? or(...branchRoles.map((role) => (compute.branchRoles ? truthOf(compute.branchRoles.includes(role)) : 0.5)))
      : 1,
    truthOf(compute.createdAtMs + minAgeMs <= nowMs),
  );
}

/** A name that is not known may be any. */
function listed(globs: readonly string[] | undefined, names: readonly (string | undefined)[]): Truth {
  if (!globs) return 1;
  const fits = (glob: string): Truth => {
    const pattern = new RegExp(`^${glob.replaceAll('*', '.*').replaceAll('?', '.')}$`);
    return or(...names.map((name) => (name === undefined ? 0.5 : truthOf(pattern.test(name)))));
  };
  const included = globs.filter((glob) => glob[0] !== '!').map(fits);
  const excluded = globs.filter((glob) => glob[0] === '!').map((glob) => fits(glob.slice(1)));
  return and(or(...included), not(or(...excluded)));
}

interface Situation {
  compute: Compute;
  baseline: ComputeSettings;
  /** Of this compute. */
  holds: readonly Hold[];
  windows: SlowWindows;
}

/** What is wanted at an instant, by all policies and by those that enforce, and what stops writes or allows a restart. */
export function slowOutcome(policies: readonly Policy[], situation: Situation, instantMs: number) {
  const { compute, windows } = situation;
  const truth = new Map(policies.map((policy) => [policy, slowSelection(policy.select, compute, instantMs)]));
  const certain = policies.filter((policy) => truth.get(policy) === 1);
  const enforcing = certain.filter(({ mode }) => mode === 'enforce');
  const open = policies.filter((policy) => 'at' in policy && windows.isOpenAt(policy.at, instantMs));
  const restarts = open.filter((policy) => policy.kind === 'restart' && truth.get(policy) === 1);
  const byRank = (a: Policy, b: Policy) =>
    Number(b.mode === 'enforce') - Number(a.mode === 'enforce') ||
    b.priority - a.priority ||
    policies.indexOf(b) - policies.indexOf(a);
  return {
    desired: slowProposals(certain, situation, instantMs),
    enforced: slowProposals(enforcing, situation, instantMs),
    freezes: open
      .filter((policy) => policy.kind === 'freeze' && policy.mode === 'enforce' && truth.get(policy) !== 0)
      .map(({ name }) => name),
    restart: restarts.toSorted(byRank)[0]?.name,
    unknown: policies.filter((policy) => truth.get(policy) === 0.5).map(({ name }) => name),
  };
}

function slowProposals(
  policies: readonly Policy[],
  { compute, baseline, holds, windows }: Situation,
  instantMs: number,
) {
  const schedules = policies.filter((policy): policy is SchedulePolicy => policy.kind === 'schedule');
  const limits = policies.filter((policy): policy is LimitsPolicy => policy.kind === 'limits');
  const hard = limits.filter((policy) => policy.hard);
  // What a window that is about to open is compared with where nothing else asks for a value.
  const sizeHolder = limits.some(sizeRange) ? baseline : compute;
  const timeoutHolder = limits.some(timeoutRange) ? baseline : compute;
  const actual = { ...sizeHolder, suspendTimeoutSeconds: timeoutHolder.suspendTimeoutSeconds };
  const scheduled = slowDecide(schedules, { windows, actual, baseline }, instantMs);
  const current = holds.filter(({ createdAtMs, expiresAtMs }) => createdAtMs <= instantMs && instantMs < expiresAtMs);
  // Holds come in the order in which they were set: of two of one instant the later one is the newer.
  const newest = current.toReversed().toSorted((a, b) => b.createdAtMs - a.createdAtMs);

  const size = slowSize({ scheduled: scheduled.size, baseline, newest, limits, hard });
  const timeout = slowTimeout({ scheduled: scheduled.suspendTimeoutSeconds, baseline, newest, limits, hard });
  const neverSuspends = timeout !== null && (size ?? compute).maxCu > 16;
  return { size, suspendTimeoutSeconds: neverSuspends ? -1 : timeout };
}

interface Wishes<T> {
  scheduled: T | null | undefined;
  baseline: ComputeSettings;
  newest: readonly Hold[];
  limits: readonly LimitsPolicy[];
  hard: readonly LimitsPolicy[];
}

function slowSize({ scheduled, baseline, newest, limits, hard }: Wishes<Size>): Size | null {
  const allowed = range(limits.map(sizeRange));
  const limited = allowed
    ? clampSize(scheduled ?? { minCu: baseline.minCu, maxCu: baseline.maxCu }, allowed)
    : scheduled;
  const held = newest.find((hold) => hold.size)?.size ?? limited;
  const hardAllowed = range(hard.map(sizeRange));
  return held ? platformSize(hardAllowed ? clampSize(held, hardAllowed) : held) : null;
}

function slowTimeout({ scheduled, baseline, newest, limits, hard }: Wishes<number>): number | null {
  const allowed = range(limits.map(timeoutRange));
  const limited = allowed ? clampTimeout(scheduled ?? baseline.suspendTimeoutSeconds, allowed) : scheduled;
  const held = newest.find((hold) => hold.suspendTimeoutSeconds !== undefined)?.suspendTimeoutSeconds ?? limited;
  const hardAllowed = range(hard.map(timeoutRange));
  return held != null && hardAllowed ? clampTimeout(held, hardAllowed) : (held ?? null);
}

type Range = readonly [low: number, high: number];

/** The later ones first; what excludes them does not count. */
function range(all: readonly (Range | undefined)[]): Range | undefined {
  let both: Range | undefined;
  for (const one of all.toReversed()) {
    if (!one) continue;
    const next: Range = both ? [Math.max(both[0], one[0]), Math.min(both[1], one[1])] : one;
    if (next[0] <= next[1]) both = next;
  }
  return both;
}

function sizeRange({ size }: LimitsPolicy): Range | undefined {
  return size && [size.minCu ?? 0, size.maxCu ?? Infinity];
}

function timeoutRange({ suspendTimeout }: LimitsPolicy): Range | undefined {
  if (!suspendTimeout) return undefined;
  return [lengthOf(suspendTimeout.minSeconds ?? 0), lengthOf(suspendTimeout.maxSeconds ?? -1)];
}

const lengthOf = (seconds: number) => (seconds === -1 ? Infinity : seconds);
const clamp = (value: number, [low, high]: Range) => Math.min(high, Math.max(low, value));
const clampSize = ({ minCu, maxCu }: Size, to: Range) => ({ minCu: clamp(minCu, to), maxCu: clamp(maxCu, to) });
const clampTimeout = (seconds: number, to: Range) => {
  const length = clamp(lengthOf(seconds), to);
  return length === Infinity ? -1 : length;
};

/** 0.25, 0.5, 1 to 16; above 16 only fixed sizes. */
function platformSize({ minCu, maxCu }: Size): Size {
  const low = Math.min(minCu, maxCu);
  const reachable = [0.25, 0.5, ...Array.from({ length: 16 }, (_, index) => index + 1)].filter((cu) => cu <= low + 8);
  if (maxCu <= Math.min(16, low + 8)) return { minCu: low, maxCu };
  return { minCu: low, maxCu: Math.max(low, ...reachable) };
}
