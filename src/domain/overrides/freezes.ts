import type { Compute } from '../compute/compute.ts';
import { getOrAdd } from '../grouping.ts';
import { AT_ANY_AGE, compileSelector } from '../policy/select.ts';
import { globListsOf, type Selector, type SelectorKeys, stepsOf } from '../policy/selector.ts';
import { sum } from '../sum.ts';

/** A person's freeze, which stops writes until it expires. Freezes by policy are `kind: freeze`. */
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
  /** The team to whose scope the owner's token is limited; absent for an unlimited token. */
  team?: string;
}

/**
 * The active freezes that select the compute, or may select it. A freeze is active as soon as it is read, even if its creation time is in the
 * future.
 */
export function freezesAt(freezes: readonly Freeze[], compute: Compute, instantMs: number): Freeze[] {
  return freezes.filter(({ select, expiresAtMs }) => instantMs < expiresAtMs && mayConcern(select)(compute));
}

// Limits for all active freezes: every decision matches each of them, and all are read again when one changes.
/** Steps, each about a microsecond, to match one name with all globs. */
const MAX_STEPS = 250;
/** The total length of all globs. */
const MAX_CHARACTERS = 256 * 1024;

/** The maximum number of freezes of one team, and the share of the limits for globs that it may use, so that teams don't use up the limits of all. */
const MAX_OF_TEAM = 20;
const SHARE_OF_TEAM = 0.2;

/**
 * The problem, in one line, if these freezes exceed the limits. The freezes of each team are counted separately, and so are freezes without a
 * team. The first freeze of a team is always allowed: its scope was checked when the settings were read.
 */
export function whyTooManyFreezes(
  freezes: readonly Pick<Freeze, 'select' | 'team'>[],
  team: string | undefined,
): string | undefined {
  const ofTeam = freezes.filter((freeze) => freeze.team === team);
  if (team === undefined) return hasTooManyGlobs(ofTeam, 1) ? `${TOO_MANY_GLOBS}: ${REMEDY}` : undefined;
  if (ofTeam.length > MAX_OF_TEAM)
    return `team ${team} has ${MAX_OF_TEAM} freezes, the most that a team may have: unfreeze some`;
  const isTooMany = ofTeam.length > 1 && hasTooManyGlobs(ofTeam, SHARE_OF_TEAM);
  return isTooMany ? `${TOO_MANY_GLOBS} for a team: ${REMEDY}` : undefined;
}

const TOO_MANY_GLOBS = 'the globs of all active freezes would be too many, or take too long to match';
const REMEDY = 'unfreeze some, or write fewer globs with fewer wildcards';

function hasTooManyGlobs(freezes: readonly Pick<Freeze, 'select'>[], share: number): boolean {
  const selectors = freezes.flatMap(({ select }) => (select === 'all' ? [] : [select]));
  const steps = sum(selectors.map(stepsOf));
  const characters = selectors.flatMap(globListsOf).flat().join('').length;
  return steps > share * MAX_STEPS || characters > share * MAX_CHARACTERS;
}

/** Compiled selectors: every decision about any compute tests each freeze. */
const selectorCache = new WeakMap<Selector<'request'>, ReturnType<typeof compileSelector>>();

/** Returns a test that accepts a compute if a freeze's selector matches it, or may match it. */
export function mayConcern(select: Freeze['select']): (compute: Compute) => boolean {
  if (select === 'all') return () => true;
  const matches = getOrAdd(selectorCache, select, () => compileSelector(select));
  return (compute) => matches(compute, AT_ANY_AGE) !== 'no';
}

/** A selector in the words of `ebb freeze --select`, with the team's scope if it has one. */
function selectorText({ minAgeMs: _age, ...keys }: SelectorKeys): string {
  return Object.entries(keys)
    .map(([key, value]) => `${key === 'branchRoles' ? 'branch_roles' : key}=${[value].flat().join()}`)
    .join(' ');
}

/** Such as `projects=web-*, raises allowed`. */
export function describeSelect({ select, allowRaise }: Pick<Freeze, 'select' | 'allowRaise'>): string {
  const computes = select === 'all' ? 'all computes' : selectorText(select);
  return allowRaise ? `${computes}, raises allowed` : computes;
}
