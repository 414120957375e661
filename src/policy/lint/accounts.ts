import type { Selector } from '../../domain/policy/policy-base.ts';
import { globsMeet } from './glob-overlap.ts';

/** True if a selector may select something in an account, by the account's name. */
export function mayBeAccount({ accounts: globs }: Selector, name: string): boolean {
  if (globs === undefined) return true;
  const isMatched = (glob: string) => globsMeet(glob, name);
  const excludes = globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1));
  return globs.some((glob) => !glob.startsWith('!') && isMatched(glob)) && !excludes.some(isMatched);
}
