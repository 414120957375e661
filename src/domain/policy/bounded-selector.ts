import type { Selector } from './policy-base.ts';

/** What one selector of a request or a freeze may be at most: it is asked of every compute, within a request or at every decision. */
export const SELECTOR_LIMITS = {
  /** Globs of one list. */
  globs: 1000,
  /** Characters of one glob. */
  characters: 256,
  /** Steps, each about a microsecond, that it takes to match one name with all its globs. */
  steps: 25,
} as const;

declare const bounded: unique symbol;

/** A selector within {@link SELECTOR_LIMITS}. Only {@link boundedSelector} makes one. */
export type BoundedSelector = Selector & { readonly [bounded]: true };

/** The selector, or why it is beyond the limits, in one line. */
export function boundedSelector(
  selector: Selector,
): { ok: true; value: BoundedSelector } | { ok: false; problem: string } {
  const { globs, characters, steps } = SELECTOR_LIMITS;
  const { accounts, projects, scope, branches, computes, regions } = selector;
  const lists = [accounts, projects, scope, branches, computes, regions].filter((list) => list !== undefined);
  if (lists.some((list) => list.length > globs)) return { ok: false, problem: `a list has at most ${globs} globs` };
  if (lists.flat().some((glob) => glob.length > characters)) {
    return { ok: false, problem: `a glob has at most ${characters} characters` };
  }
  if (lists.flat().reduce((sum, glob) => sum + stepsToMatch(glob), 0) <= steps) {
    return { ok: true, value: selector as BoundedSelector };
  }
  const problem = 'its globs take too long to match; write fewer, with fewer wildcards and without "?"';
  return { ok: false, problem };
}

/** What a freeze that was set already covers: one whose selector is beyond the limits must count still, so it is one of everything. */
export function boundedOrAll(select: Selector | 'all'): BoundedSelector | 'all' {
  if (select === 'all') return select;
  const outcome = boundedSelector(select);
  return outcome.ok ? outcome.value : 'all';
}

const STEPS_OF_STAR = 0.1;
const STEPS_OF_STARS = 0.5;
/** A glob with `?` goes back in the name, so each of its characters may be compared with each of the name. */
const STEPS_OF_CHARACTER = 0.5;

/** An upper bound for a name of 256 characters. A glob without wildcards is looked up. */
function stepsToMatch(glob: string): number {
  if (glob.includes('?')) return 1 + glob.length * STEPS_OF_CHARACTER;
  const stars = glob.split(/\*+/).length - 1;
  return stars > 1 ? stars * STEPS_OF_STARS : stars * STEPS_OF_STAR;
}
