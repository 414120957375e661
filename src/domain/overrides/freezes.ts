import type { Compute } from '../compute/compute.ts';
import { compileSelector } from '../policy/select.ts';
import { globListsOf, type Selector, stepsOf } from '../policy/selector.ts';

/** A stop of every write, set by a person for a while. Those of policies are `kind: freeze`. */
export interface Freeze {
  id: string;
  /** The person who set it. */
  owner: string;
  reason: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  /** It no longer counts from this instant on. */
  expiresAtMs: number;
  select: Selector<'request'> | 'all';
  /** Raises are written all the same. */
  allowRaise: boolean;
}

/**
 * The freezes that concern a compute at an instant. A freeze counts as soon as it is known, whatever the clock of its author's machine;
 * and where its selection is unknown, it applies.
 */
export function freezesAt(freezes: readonly Freeze[], compute: Compute, instantMs: number): Freeze[] {
  return freezes.filter(({ select, expiresAtMs }) => instantMs < expiresAtMs && mayConcern(select)(compute));
}

/** Limits of all active freezes together: each is matched with every compute at every decision, and all are read when one changes. */
export const FREEZES_LIMITS = {
  /** Steps, each about a microsecond, that it takes to match one name with the globs of all. */
  steps: 250,
  /** Characters of the globs of all. */
  characters: 256 * 1024,
} as const;

/** Why freezes are too many together, in one line; undefined if they are not. */
export function whyTooManyFreezes(freezes: readonly Pick<Freeze, 'select'>[]): string | undefined {
  const selectors = freezes.flatMap(({ select }) => (select === 'all' ? [] : [select]));
  const steps = selectors.reduce((sum, select) => sum + stepsOf(select), 0);
  const characters = selectors.flatMap(globListsOf).flat().join('').length;
  if (steps <= FREEZES_LIMITS.steps && characters <= FREEZES_LIMITS.characters) return undefined;
  return 'the globs of all active freezes would be too many, or take too long to match: unfreeze some, or write fewer globs with fewer wildcards';
}

type Test = (compute: Compute) => boolean;

/** Each freeze is asked of every compute at every judgement, so it is made ready once. */
const ready = new WeakMap<Selector<'request'>, Test>();

/** Tests if a freeze's selector may match a compute. */
export function mayConcern(select: Freeze['select']): Test {
  if (select === 'all') return () => true;
  const test = ready.get(select) ?? testOf(select);
  ready.set(select, test);
  return test;
}

function testOf(select: Selector<'request'>): Test {
  const matches = compileSelector(select);
  return (compute) => matches(compute, Number.POSITIVE_INFINITY) !== 'no';
}
