import type { Compute } from '../compute/compute.ts';
import { compileSelector } from '../policy/select.ts';
import type { Selector } from '../policy/selector.ts';

/** A stop of every write, set by a person for a while. Those of policies are `kind: freeze`. */
export interface Freeze {
  id: string;
  /** Who set it. */
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
 * The freezes that concern a compute at an instant. One counts from when it is known, whatever the clock of the machine that set it says;
 * and where it is not known whether it selects the compute, it does.
 */
export function freezesAt(freezes: readonly Freeze[], compute: Compute, instantMs: number): Freeze[] {
  return freezes.filter(({ select, expiresAtMs }) => instantMs < expiresAtMs && mayConcern(select)(compute));
}

type Test = (compute: Compute) => boolean;

/** Each freeze is asked of every compute at every judgement, so it is made ready once. */
const ready = new WeakMap<Selector<'request'>, Test>();

/** Whether what is selected to be frozen may be a compute. */
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
