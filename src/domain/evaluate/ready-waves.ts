/**
 * Assigns computes to start times, so that a herd under the rate limit is ready by the start of its windows. Pure; instants are
 * milliseconds since the epoch.
 */

import { type Compute, sameSize } from '../compute/compute.ts';
import type { BoundaryInput } from '../decide/boundaries.ts';
import { decide } from '../decide/decide.ts';
import { type CompiledPolicies, withReadyWaves } from '../policy/compiled-policies.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { ScheduleWindow } from '../policy/schedule-window.ts';
import {
  comparePlaces,
  leadOfWaves,
  type PlaceInHerd,
  placeInHerd,
  type ReadyWaves,
  WAVE_MS,
  type Wave,
} from '../policy/waves.ts';
import { latestSends, type RateLimits } from '../rate-budget/limits.ts';
import { anyOpenAt, nextChangeOfAny } from '../time/windows.ts';

/** Of an idle compute that is the answer to its PATCH; an active one has its size after an operation of 10 s at most. */
const IDLE_CHANGE_MS = 3_000;
const ACTIVE_CHANGE_MS = 15_000;

/** Of one window more are not looked for: the waves of the later ones are not known. */
const MOST_OPENINGS = 500;

export interface ReadyWavesInput {
  policies: CompiledPolicies;
  /** The computes of the fleet, with their facts. */
  herd: readonly Omit<BoundaryInput, 'policies'>[];
  /** An account's limits for changes. */
  limitsOf: (account: string) => RateLimits;
  /** From the sending of a change to the new size, in milliseconds; as documented above if absent. */
  durationMs?: (compute: Compute) => number;
}

/** Openings of windows with `ready: true` whose policy may write, after `fromMs` up to and including `toMs`; ascending. */
export function readyOpenings({ set }: CompiledPolicies, fromMs: number, toMs: number): number[] {
  const windows = set.policies.flatMap((policy) => (policy.mode === 'enforce' ? ruleOf(policy).windows(policy) : []));
  const openings = windows.flatMap((window) => (window.readyInWaves ? openingsOf(window, fromMs, toMs) : []));
  return [...new Set(openings)].toSorted((a, b) => a - b);
}

function openingsOf({ at }: ScheduleWindow, fromMs: number, toMs: number): number[] {
  const openings: number[] = [];
  let changeMs = nextChangeOfAny(at, fromMs);
  while (changeMs !== undefined && changeMs <= toMs && openings.length < MOST_OPENINGS) {
    if (anyOpenAt(at, changeMs)) openings.push(changeMs);
    changeMs = nextChangeOfAny(at, changeMs);
  }
  return openings;
}

/**
 * The policies with the waves of all starts of windows in this time: those fixed for these policies, and computed ones for the others.
 * Waves fixed for other policies are left out.
 */
export function withWavesOf(
  input: ReadyWavesInput & { fixed: readonly ReadyWaves[] },
  { fromMs, toMs }: { fromMs: number; toMs: number },
): CompiledPolicies {
  const { policies } = input;
  const fixed = input.fixed.filter(({ setHash }) => setHash === policies.set.hash);
  const openings = readyOpenings(policies, fromMs, toMs);
  const others = openings.filter((opensAtMs) => !fixed.some((waves) => waves.opensAtMs === opensAtMs));
  return withReadyWaves(policies, [...fixed, ...readyWaves(input, others)]);
}

interface Raise extends PlaceInHerd {
  account: string;
  opensAtMs: number;
  durationMs: number;
}

/**
 * The waves of each account at these starts of windows: of 15 s each, as few as the limits allow, at most 40. Each raise begins in the last wave
 * from which it can still be made in time; who comes first in the herd begins earliest. Nothing where no compute is raised.
 */
export function readyWaves(input: ReadyWavesInput, openings: readonly number[]): ReadyWaves[] {
  const lastFirst = openings.toSorted((a, b) => b - a).flatMap((opensAtMs) => raisesAt(input, opensAtMs));
  const accounts = new Set(lastFirst.map(({ account }) => account));
  return [...accounts].flatMap((account) => {
    const own = lastFirst.filter((raise) => raise.account === account);
    const setHash = input.policies.set.hash;
    return wavesOf(own, input.limitsOf(account)).map((one) => ({ account, setHash, ...one }));
  });
}

/** All raises of the herd at one instant, those of each account together, the last of them first. */
function raisesAt({ policies, herd, durationMs = usualDurationMs }: ReadyWavesInput, opensAtMs: number): Raise[] {
  const raises = new Map<string, Raise[]>();
  const as = (waves: readonly Wave[]) => {
    const accounts = new Set(herd.map(({ compute }) => compute.account));
    const setHash = policies.set.hash;
    return withReadyWaves(
      policies,
      [...accounts].map((account) => ({ account, opensAtMs, setHash, waves })),
    );
  };
  const lastPlace = { priority: Number.NEGATIVE_INFINITY, part: 1 };
  const early = as([{ leadMs: WAVE_MS, computes: 0, last: lastPlace }]);
  const onTime = as([]);
  for (const subject of herd) {
    const { compute } = subject;
    const instantMs = opensAtMs - 1;
    const decision = decide({ ...subject, policies: early, instantMs });
    const step = decision.trace.find(({ code, policy }) => code === 'ready' && policy?.mode === 'enforce');
    if (!step?.policy) continue;
    const { enforced } = decide({ ...subject, policies: onTime, instantMs });
    const isRaised =
      !sameSize(enforced.size, decision.enforced.size) ||
      enforced.suspendTimeoutSeconds !== decision.enforced.suspendTimeoutSeconds;
    if (!isRaised) continue;
    const { account } = compute;
    const own = raises.get(account) ?? [];
    own.push({ account, opensAtMs, durationMs: durationMs(compute), ...placeInHerd(step.policy.priority, compute) });
    raises.set(account, own);
  }
  return [...raises.values()].flatMap((own) => {
    const longestMs = own.reduce((longest, raise) => Math.max(longest, raise.durationMs), 0);
    return own.map((raise) => ({ ...raise, durationMs: longestMs })).toSorted((a, b) => comparePlaces(b, a));
  });
}

/** Raises are by their instants, the last first. */
function wavesOf(raises: readonly Raise[], limits: RateLimits): Pick<ReadyWaves, 'opensAtMs' | 'waves'>[] {
  const deadlines = raises.map(({ opensAtMs, durationMs }) => opensAtMs - durationMs);
  const sends = latestSends(deadlines, limits);
  const found = new Map<number, Map<number, Wave>>();
  for (const [index, { opensAtMs, priority, part }] of raises.entries()) {
    const leadMs = leadOfWaves(opensAtMs - (sends[index] ?? 0));
    const waves = found.get(opensAtMs) ?? new Map<number, Wave>();
    found.set(opensAtMs, waves);
    // The first that is found of a wave is the last that is in it.
    const { computes = 0, last = { priority, part } } = waves.get(leadMs) ?? {};
    waves.set(leadMs, { leadMs, computes: computes + 1, last });
  }
  return [...found].map(([opensAtMs, waves]) => ({ opensAtMs, waves: [...waves.values()].toReversed() }));
}

/** Lists of projects in a minute while a herd is changed: by two daemons, every 15 s. */
const LISTS_A_MINUTE = 8;
const PROJECTS_OF_LIST = 400;

/** The limits that are left for changes by account, while lists of its projects confirm earlier readings. */
export function limitsBesideLists(
  limits: RateLimits,
  computes: Iterable<Pick<Compute, 'account' | 'projectId'>>,
): (account: string) => RateLimits {
  const projects = new Map<string, Set<string>>();
  for (const { account, projectId } of computes) {
    projects.set(account, (projects.get(account) ?? new Set()).add(projectId));
  }
  return (account) => {
    // The last page is known by its being empty.
    const pages = 1 + Math.ceil((projects.get(account)?.size ?? 0) / PROJECTS_OF_LIST);
    return { ...limits, perMinute: Math.max(limits.perRouteSecond, limits.perMinute - pages * LISTS_A_MINUTE) };
  };
}

function usualDurationMs({ state }: Compute): number {
  return state === 'idle' ? IDLE_CHANGE_MS : ACTIVE_CHANGE_MS;
}
