import { parseSelector, type Selector, type SelectorKeys } from '../../src/domain/policy/selector.ts';

/** A selector as a freeze has it, within the limits. */
export function bounded(keys: Partial<SelectorKeys>): Selector<'request'> {
  const outcome = parseSelector({ minAgeMs: 0, ...keys }, 'request');
  if (!outcome.ok) throw new Error(outcome.problem);
  return outcome.value;
}

/** A selector as a policy file has it, within the limits. */
export function aSelector(keys: Partial<SelectorKeys>): Selector {
  const outcome = parseSelector({ minAgeMs: 0, ...keys }, 'file');
  if (!outcome.ok) throw new Error(outcome.problem);
  return outcome.value;
}
