import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import type { LintContext, Remark } from './rule.ts';

/** The place of a key of a policy's source, where the source stands in the same file; else that of its name in the policy. */
export function placeInSource(
  policy: HeadroomPolicy,
  key: string,
  { written }: Pick<LintContext, 'written'>,
): Pick<Remark, 'at' | 'fromTop'> {
  const at = ['sources', policy.connections, key];
  return written(policy)?.valueAt(at) === undefined ? { at: ['connections'] } : { at, fromTop: true };
}
