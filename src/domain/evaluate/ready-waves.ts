/**
 * Splits the computes that one instant would raise (the herd) into waves, so that all are ready by then despite the rate limit. Pure;
 * instants are milliseconds since the epoch.
 */

import type { VerifiedFacts } from '../compute/account-facts.ts';
import { type Compute, sameSize } from '../compute/compute.ts';
import type { BoundaryInput } from '../decide/boundaries.ts';
import { decide } from '../decide/decide.ts';
import { getOrAdd, groupBy } from '../grouping.ts';
import { type CompiledPolicies, withReadyWaves } from '../policy/compiled-policies.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { ScheduleWindow } from '../policy/schedule-window.ts';
import {
  compareHerdPositions,
  type HerdPosition,
  herdPosition,
  leadOfWaves,
  type ReadyWaves,
  WAVE_MS,
  type Wave,
  waveInstants,
} from '../policy/waves.ts';
import { latestSends, type RateLimits } from '../rate-budget/limits.ts';
import { anyOpenAt, nextChangeOfAny } from '../time/windows.ts';

/** The usual time from sending a change to the new size. An idle compute has it with the answer, an awake one after an operation of up to 10 s. */
const IDLE_CHANGE_MS = 3_000;
const ACTIVE_CHANGE_MS = 15_000;

/** The maximum number of openings of one window that get waves; later openings have none. */
const MAX_OPENINGS = 500;

export interface ReadyWavesInput {
  policies: CompiledPolicies;
  /** All computes of the fleet. */
  subjects: readonly Omit<BoundaryInput, 'policies'>[];
  /** The rate limits for changes in an account. */
  limitsOf: (account: string) => RateLimits;
  /** The time from sending a change to the new size, in milliseconds; absent: the usual time. */
  durationMs?: (compute: Compute) => number;
  verified?: VerifiedFacts | undefined;
}

/** The openings of enforced windows with `ready: true`, after `fromMs` up to and including `toMs`, ascending. */
export function readyOpenings({ set }: CompiledPolicies, fromMs: number, toMs: number): number[] {
  const windows = set.policies.flatMap((policy) => (policy.mode === 'enforce' ? ruleOf(policy).windows(policy) : []));
  const openings = windows.flatMap((window) => (window.readyInWaves ? openingsOf(window, fromMs, toMs) : []));
  return [...new Set(openings)].toSorted((a, b) => a - b);
}

/** The openings after now, up to `toMs`, whose waves must be computed. Fixed waves stay if they are of these policies, or have begun. */
export function openingsWithoutWaves(
  policies: CompiledPolicies,
  fixed: readonly ReadyWaves[],
  { nowMs, toMs }: { nowMs: number; toMs: number },
): number[] {
  const valid = fixed.filter(
    (waves) => waves.setHash === policies.set.hash || (waveInstants(waves)[0] ?? waves.opensAtMs) <= nowMs,
  );
  return readyOpenings(policies, nowMs, toMs).filter((opensAtMs) => valid.every((one) => one.opensAtMs !== opensAtMs));
}

function openingsOf({ at }: ScheduleWindow, fromMs: number, toMs: number): number[] {
  const openings: number[] = [];
  let changeMs = nextChangeOfAny(at, fromMs);
  while (changeMs !== undefined && changeMs <= toMs && openings.length < MAX_OPENINGS) {
    if (anyOpenAt(at, changeMs)) openings.push(changeMs);
    changeMs = nextChangeOfAny(at, changeMs);
  }
  return openings;
}

/** Returns the policies with waves for all openings in this time: fixed waves of this policy set, and computed ones for all other openings. */
export function withWavesBetween(
  input: ReadyWavesInput & { fixed: readonly ReadyWaves[] },
  { fromMs, toMs }: { fromMs: number; toMs: number },
): CompiledPolicies {
  const { policies } = input;
  const fixed = input.fixed.filter(({ setHash }) => setHash === policies.set.hash);
  const openings = readyOpenings(policies, fromMs, toMs);
  const unfixedOpenings = openings.filter((opensAtMs) => !fixed.some((waves) => waves.opensAtMs === opensAtMs));
  return withReadyWaves(policies, [...fixed, ...readyWaves(input, unfixedOpenings)]);
}

interface Raise extends HerdPosition {
  account: string;
  opensAtMs: number;
  durationMs: number;
}

/**
 * Computes each account's waves for these openings: 15 s each, at most 40 for an opening, and as few as the rate limits allow. Each raise is in
 * the last wave in which it is still in time, and the first computes of the herd are raised in the earliest waves. Empty if no compute is raised.
 */
export function readyWaves(input: ReadyWavesInput, openings: readonly number[]): ReadyWaves[] {
  const raisesLastFirst = openings.toSorted((a, b) => b - a).flatMap((opensAtMs) => raisesAt(input, opensAtMs));
  const accounts = new Set(raisesLastFirst.map(({ account }) => account));
  return [...accounts].flatMap((account) => {
    const raises = raisesLastFirst.filter((raise) => raise.account === account);
    const setHash = input.policies.set.hash;
    return wavesOf(raises, input.limitsOf(account)).map((waves) => ({ account, setHash, ...waves }));
  });
}

/** All raises of the herd for one opening, grouped by account, the last of the herd first. */
function raisesAt(
  { policies, subjects, verified, durationMs = usualDurationMs(verified) }: ReadyWavesInput,
  opensAtMs: number,
): Raise[] {
  const accounts = [...new Set(subjects.map(({ compute }) => compute.account))];
  const setHash = policies.set.hash;
  const withWaves = (waves: readonly Wave[]) =>
    withReadyWaves(
      policies,
      accounts.map((account) => ({ account, opensAtMs, setHash, waves })),
    );
  const lastPosition = { priority: Number.NEGATIVE_INFINITY, part: 1 };
  const earlyPolicies = withWaves([{ leadMs: WAVE_MS, computes: 0, last: lastPosition }]);
  const onTimePolicies = withWaves([]);
  const raises: Raise[] = [];
  for (const subject of subjects) {
    const { compute } = subject;
    const instantMs = opensAtMs - 1;
    // A compute is raised early if a wave just before the opening gives it other values than no wave.
    const decision = decide({ ...subject, policies: earlyPolicies, instantMs });
    const step = decision.trace.find(({ code, policy }) => code === 'ready' && policy?.mode === 'enforce');
    if (!step?.policy) continue;
    const { enforced } = decide({ ...subject, policies: onTimePolicies, instantMs });
    const isRaised =
      !sameSize(enforced.size, decision.enforced.size) ||
      enforced.suspendTimeoutSeconds !== decision.enforced.suspendTimeoutSeconds;
    if (!isRaised) continue;
    const position = herdPosition(step.policy.priority, compute);
    raises.push({ account: compute.account, opensAtMs, durationMs: durationMs(compute), ...position });
  }
  return [...groupBy(raises, ({ account }) => account).values()].flatMap((ofAccount) => {
    const longestMs = ofAccount.reduce((longest, raise) => Math.max(longest, raise.durationMs), 0);
    return ofAccount
      .map((raise) => ({ ...raise, durationMs: longestMs }))
      .toSorted((a, b) => compareHerdPositions(b, a));
  });
}

/** Assigns raises, sorted by opening with the last first, to waves. */
function wavesOf(raises: readonly Raise[], limits: RateLimits): Pick<ReadyWaves, 'opensAtMs' | 'waves'>[] {
  const deadlines = raises.map(({ opensAtMs, durationMs }) => opensAtMs - durationMs);
  const sends = latestSends(deadlines, limits);
  const wavesByOpening = new Map<number, Map<number, Wave>>();
  for (const [index, { opensAtMs, priority, part }] of raises.entries()) {
    const leadMs = leadOfWaves(opensAtMs - (sends[index] ?? 0));
    const waves = getOrAdd(wavesByOpening, opensAtMs, () => new Map<number, Wave>());
    // Raises come last first, so the first one in a wave is its last member.
    const { computes = 0, last = { priority, part } } = waves.get(leadMs) ?? {};
    waves.set(leadMs, { leadMs, computes: computes + 1, last });
  }
  return [...wavesByOpening].map(([opensAtMs, waves]) => ({ opensAtMs, waves: [...waves.values()].toReversed() }));
}

/** The number of project lists read per minute while a herd is changed: each of two daemons reads one every 15 s. */
const LISTS_PER_MINUTE = 8;
const PROJECTS_PER_PAGE = 400;

/** The rate limits that remain for changes, by account, while lists of its projects confirm earlier changes. */
export function limitsForChanges(
  limits: RateLimits,
  computes: Iterable<Pick<Compute, 'account' | 'projectId'>>,
): (account: string) => RateLimits {
  const projects = new Map<string, Set<string>>();
  for (const { account, projectId } of computes) {
    projects.set(account, (projects.get(account) ?? new Set()).add(projectId));
  }
  return (account) => {
    // One more request: an empty page marks the end of the list.
    const pages = 1 + Math.ceil((projects.get(account)?.size ?? 0) / PROJECTS_PER_PAGE);
    return { ...limits, perMinute: Math.max(limits.perRouteSecond, limits.perMinute - pages * LISTS_PER_MINUTE) };
  };
}

function usualDurationMs(verified: VerifiedFacts | undefined) {
  return ({ state, account }: Compute): number =>
    state === 'idle' && verified?.get(account)?.idle_resize !== 'wakes' ? IDLE_CHANGE_MS : ACTIVE_CHANGE_MS;
}
