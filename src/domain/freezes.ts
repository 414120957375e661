import type { Compute } from './compute.ts';
import type { Selector } from './policy.ts';
import { compileSelector } from './select.ts';

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
  select: Selector | 'all';
  /** Raises are written all the same. */
  allowRaise: boolean;
}

/** The freezes that concern a compute at an instant. */
export function freezesAt(freezes: readonly Freeze[], compute: Compute, instantMs: number): Freeze[] {
  return freezes.filter(
    ({ select, createdAtMs, expiresAtMs }) =>
      createdAtMs <= instantMs &&
      instantMs < expiresAtMs &&
      (select === 'all' || compileSelector(select)(compute, Number.POSITIVE_INFINITY)),
  );
}
