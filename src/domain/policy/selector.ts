import type { BranchRole } from '../compute/compute.ts';

/** Globs against ids or names; a `!` before a glob excludes. All keys that are given must match. */
export interface SelectorKeys {
  accounts?: readonly string[];
  projects?: readonly string[];
  /** Globs on projects outside of which nothing is selected: those of the team whose file has the policy. */
  scope?: readonly string[];
  branches?: readonly string[];
  computes?: readonly string[];
  regions?: readonly string[];
  types?: readonly ('read_write' | 'read_only')[];
  /** Roles of the branch, any of them. */
  branchRoles?: readonly BranchRole[];
  /** A stable part of the computes, by hash of their ids: in (0, 1]. */
  share?: number;
  /** Computes younger than this are left alone. */
  minAgeMs: number;
}

/**
 * Limits of one selector. That of a request or a freeze is matched with every compute within a request, or at every decision; that of a
 * file once for each compute that is read.
 */
export const SELECTOR_LIMITS = {
  request: {
    /** Globs of one list. */
    globs: 1000,
    /** Characters of one glob. */
    characters: 256,
    /** Steps, each about a microsecond, that it takes to match one name with all its globs. */
    steps: 25,
  },
  file: { globs: 1000, characters: 256, steps: 500 },
} as const;

type Origin = keyof typeof SELECTOR_LIMITS;

declare const within: unique symbol;

/** A selector within the limits of where it is from. Only {@link parseSelector} makes one. */
export type Selector<From extends Origin = Origin> = SelectorKeys & { readonly [within]: From };

/** The selector, or why it is beyond the limits, in one line. */
export function parseSelector<From extends Origin>(
  keys: SelectorKeys,
  from: From,
): { ok: true; value: Selector<From> } | { ok: false; problem: string } {
  const { globs, characters, steps } = SELECTOR_LIMITS[from];
  const lists = globListsOf(keys);
  if (lists.some((list) => list.length > globs)) return { ok: false, problem: `a list has at most ${globs} globs` };
  if (lists.flat().some((glob) => glob.length > characters)) {
    return { ok: false, problem: `a glob has at most ${characters} characters` };
  }
  if (stepsOf(keys) <= steps) return { ok: true, value: keys as Selector<From> };
  const problem = 'its globs take too long to match; write fewer, with fewer wildcards and without "?"';
  return { ok: false, problem };
}

/** The selector within the projects of a team, whose globs were found to be within the limits where the settings were read. */
export function withinScope(selector: Selector, scope: readonly string[]): Selector {
  return { ...selector, scope };
}

/** All computes of a team's projects. */
export function allWithinScope(projects: readonly string[]): Selector {
  return { projects, scope: projects, minAgeMs: 0 } as SelectorKeys as Selector;
}

/** Selects every compute, whatever its age. */
export const EVERY_COMPUTE = { minAgeMs: 0 } as Selector<'request'>;

/** A stored freeze whose selector exceeds the limits must still count, so it covers everything. */
export function parsedOrAll(select: SelectorKeys | 'all'): Selector<'request'> | 'all' {
  if (select === 'all') return select;
  const outcome = parseSelector(select, 'request');
  return outcome.ok ? outcome.value : 'all';
}

/** Steps, each about a microsecond, that it takes to match one name with all globs of a selector. */
export function stepsOf(keys: SelectorKeys): number {
  return globListsOf(keys)
    .flat()
    .reduce((sum, glob) => sum + stepsToMatch(glob), 0);
}

/** All lists of globs that a selector has. */
export function globListsOf({ accounts, projects, scope, branches, computes, regions }: SelectorKeys) {
  return [accounts, projects, scope, branches, computes, regions].filter((list) => list !== undefined);
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
