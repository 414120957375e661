import type { Compute } from '../compute/compute.ts';
import { compileSelector } from '../policy/select.ts';
import { globListsOf, type Selector, type SelectorKeys, stepsOf } from '../policy/selector.ts';

/** A freeze that a person set: it stops writes until it expires. Freezes by policy are `kind: freeze`. */
export interface Freeze {
  id: string;
  /** The person who set it. */
  owner: string;
  reason: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  /** The freeze is inactive from this instant on. */
  expiresAtMs: number;
  select: Selector<'request'> | 'all';
  /** True if raises are written nevertheless. */
  allowRaise: boolean;
  /** The team to whose scope a token has limited it; absent where none has. */
  team?: string;
}

/**
 * The active freezes of a compute at an instant. A freeze is active as soon as it is known, even if its creation time is ahead. It also
 * applies where it is unknown whether it selects the compute.
 */
export function freezesAt(freezes: readonly Freeze[], compute: Compute, instantMs: number): Freeze[] {
  return freezes.filter(({ select, expiresAtMs }) => instantMs < expiresAtMs && mayConcern(select)(compute));
}

/** Limits for active freezes together: every decision matches each of them, and all are read again when one changes. */
export const FREEZES_LIMITS = {
  /** Steps, each about a microsecond, to match one name with all globs. */
  steps: 250,
  /** The total number of characters in all globs. */
  characters: 256 * 1024,
} as const;

/** So many freezes one team may have, and a fifth of the globs: whoever freezes everything is never refused for them. */
const MOST_OF_TEAM = 20;
const SHARE_OF_TEAM = 0.2;

/**
 * Why these freezes exceed the limits, in one line; undefined if they don't. The freezes of each team count for themselves, those of no
 * team (`team` undefined) too. The first of a team is always within: its scope was checked when the settings were read.
 */
export function whyTooManyFreezes(
  freezes: readonly Pick<Freeze, 'select' | 'team'>[],
  team: string | undefined,
): string | undefined {
  const own = freezes.filter((freeze) => freeze.team === team);
  if (team === undefined) return hasTooManyGlobs(own, 1) ? `${TOO_MANY_GLOBS}: ${REMEDY}` : undefined;
  if (own.length > MOST_OF_TEAM)
    return `team ${team} has ${MOST_OF_TEAM} freezes, the most that a team may have: unfreeze some`;
  const isTooMany = own.length > 1 && hasTooManyGlobs(own, SHARE_OF_TEAM);
  return isTooMany ? `${TOO_MANY_GLOBS} for a team: ${REMEDY}` : undefined;
}

const TOO_MANY_GLOBS = 'the globs of all active freezes would be too many, or take too long to match';
const REMEDY = 'unfreeze some, or write fewer globs with fewer wildcards';

function hasTooManyGlobs(freezes: readonly Pick<Freeze, 'select'>[], share: number): boolean {
  const selectors = freezes.flatMap(({ select }) => (select === 'all' ? [] : [select]));
  const steps = selectors.reduce((sum, select) => sum + stepsOf(select), 0);
  const characters = selectors.flatMap(globListsOf).flat().join('').length;
  return steps > share * FREEZES_LIMITS.steps || characters > share * FREEZES_LIMITS.characters;
}

type ComputeTest = (compute: Compute) => boolean;

/** Compiled selectors: every decision about any compute tests each freeze. */
const testCache = new WeakMap<Selector<'request'>, ComputeTest>();

/** Returns a test for whether a freeze's selector matches a compute, or may match it. */
export function mayConcern(select: Freeze['select']): ComputeTest {
  if (select === 'all') return () => true;
  const test = testCache.get(select) ?? compileTest(select);
  testCache.set(select, test);
  return test;
}

function compileTest(select: Selector<'request'>): ComputeTest {
  const matches = compileSelector(select);
  return (compute) => matches(compute, Number.POSITIVE_INFINITY) !== 'no';
}

/** A selector as `ebb freeze --select` takes it. */
function selectorText({ minAgeMs: _age, ...keys }: SelectorKeys): string {
  return Object.entries(keys)
    .map(([key, value]) => `${key === 'branchRoles' ? 'branch_roles' : key}=${[value].flat().join()}`)
    .join(' ');
}

/** As `projects=web-*, raises allowed`. */
export function describeSelect({ select, allowRaise }: Freeze): string {
  const what = select === 'all' ? 'all computes' : selectorText(select);
  return allowRaise ? `${what}, raises allowed` : what;
}
