import { type BoundedSelector, boundedSelector } from '../../src/domain/policy/bounded-selector.ts';
import type { Selector } from '../../src/domain/policy/policy-base.ts';

/** A selector as a freeze has it, within the limits. */
export function bounded(selector: Partial<Selector>): BoundedSelector {
  const outcome = boundedSelector({ minAgeMs: 0, ...selector });
  if (!outcome.ok) throw new Error(outcome.problem);
  return outcome.value;
}
