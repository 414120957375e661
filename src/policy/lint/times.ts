import type { Policy } from '../../domain/policy/policy.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { textOf } from '../kinds/kinds.ts';
import type { Path } from '../read-yaml.ts';
import type { WrittenPolicy } from '../reader.ts';
import type { LintContext } from './rule.ts';

/** A time of a policy, and where it stands. */
export interface WrittenTime {
  spec: TimeSpec;
  at: Path;
  written: WrittenPolicy | undefined;
  /** What is written there. */
  text: unknown;
}

/** Every time that a policy names, with its place. */
export function* timesOf(policy: Policy, context: Pick<LintContext, 'written'>): Iterable<WrittenTime> {
  const written = context.written(policy);
  for (const { specs, at: all } of textOf(policy).times(policy)) {
    const valueAt = (path: Path) => written?.valueAt([...written.at, ...path]);
    const isList = Array.isArray(valueAt(all));
    for (const [index, spec] of specs.entries()) {
      const at = isList ? [...all, index] : all;
      yield { spec, at, written, text: valueAt(at) };
    }
  }
}
