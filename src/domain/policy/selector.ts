import type { BranchRole } from '../compute/compute.ts';

/** Globs on ids or names; `!` before a glob excludes. All given keys must match. */
export interface SelectorKeys {
  accounts?: readonly string[];
  projects?: readonly string[];
  /** Globs on the projects of the team that owns the file: nothing outside of them is selected. */
  scope?: readonly string[];
  branches?: readonly string[];
  computes?: readonly string[];
  regions?: readonly string[];
  types?: readonly ('read_write' | 'read_only')[];
  /** Roles, one of which the branch must have. */
  branchRoles?: readonly BranchRole[];
  /** Selects a stable share, in (0, 1], of the computes, by a hash of their ids. */
  share?: number;
  /** Computes younger than this are left alone. */
  minAgeMs: number;
}

/** True if branches have to be read before computes can be selected. */
export function selectsByBranch({ branches, branchRoles }: Pick<SelectorKeys, 'branches' | 'branchRoles'>): boolean {
  return branches !== undefined || branchRoles !== undefined;
}

/**
 * Limits of one selector. A selector of a request or a freeze is matched with every compute of the request, or at every decision. A selector
 * of a file is matched only once for each compute that is read.
 */
export const SELECTOR_LIMITS = {
  request: {
    globs: 1000,
    characters: 256,
    /** The maximum number of steps, each about a microsecond, to match one name with all globs. */
    steps: 25,
  },
  file: { globs: 1000, characters: 256, steps: 500 },
} as const;

type Origin = keyof typeof SELECTOR_LIMITS;

declare const within: unique symbol;

/** A selector within the limits for its origin. Only the functions of this file make one. */
export type Selector<From extends Origin = Origin> = SelectorKeys & { readonly [within]: From };

/** Returns the selector, or a problem in one line if it exceeds the limits. A team's scope always has the limits of files. */
export function parseSelector<From extends Origin>(
  keys: SelectorKeys,
  from: From,
): { ok: true; value: Selector<From> } | { ok: false; problem: string } {
  const { scope, ...ownKeys } = keys;
  const ofScope = scope && from === 'request' ? parseSelector({ projects: scope, minAgeMs: 0 }, 'file') : undefined;
  if (ofScope?.ok === false) return ofScope;
  const { globs, characters, steps } = SELECTOR_LIMITS[from];
  const lists = globListsOf(ownKeys);
  if (lists.some((list) => list.length > globs)) return { ok: false, problem: `a list has at most ${globs} globs` };
  if (lists.flat().some((glob) => glob.length > characters)) {
    return { ok: false, problem: `a glob has at most ${characters} characters` };
  }
  if (stepsOf(ownKeys) <= steps) return { ok: true, value: keys as Selector<From> };
  const problem = 'its globs take too long to match; write fewer, with fewer wildcards and without "?"';
  return { ok: false, problem };
}

/** A problem in one line if a person's glob has wildcards of a shell, such as `[12]`, which would match as plain characters only. */
export function wildcardProblem(keys: SelectorKeys): string | undefined {
  const glob = globListsOf(keys)
    .flat()
    .find((one) => /[[\]{}]/.test(one));
  if (glob === undefined) return undefined;
  return `${JSON.stringify(glob)}: only * and ? are wildcards; write a glob for each choice, or ? for a bracket in a name`;
}

/** Restricts a selector to the projects of a team. Their globs were checked when the settings were read. */
export function withinScope(selector: Selector, scope: readonly string[]): Selector {
  return { ...selector, scope };
}

export function allWithinScope(projects: readonly string[]): Selector {
  return { projects, scope: projects, minAgeMs: 0 } as SelectorKeys as Selector;
}

/** Selects every compute, whatever its age. */
export const EVERY_COMPUTE = { minAgeMs: 0 } as Selector<'request'>;

/** Checks a stored freeze's selector. One that exceeds the limits must still stop writes, so it becomes `all`. */
export function parsedOrAll(select: SelectorKeys | 'all'): Selector<'request'> | 'all' {
  if (select === 'all') return select;
  const outcome = parseSelector(select, 'request');
  return outcome.ok ? outcome.value : 'all';
}

/** The number of steps, each about a microsecond, to match one name with all globs of a selector. */
export function stepsOf(keys: SelectorKeys): number {
  return globListsOf(keys)
    .flat()
    .reduce((sum, glob) => sum + stepsToMatch(glob), 0);
}

export function globListsOf({ accounts, projects, scope, branches, computes, regions }: SelectorKeys) {
  return [accounts, projects, scope, branches, computes, regions].filter((list) => list !== undefined);
}

/** A single star compares only the beginning and the end of a name; each of several searches the name. */
const [STEPS_OF_STAR, STEPS_OF_STARS] = [0.1, 0.5];
/** A glob with `?` backtracks, so each of its characters may be compared with each of the name. */
const STEPS_OF_CHARACTER = 0.5;

/** An upper bound of the steps for a name of 256 characters. A glob without wildcards is a look-up and free. */
function stepsToMatch(glob: string): number {
  if (glob.includes('?')) return 1 + glob.length * STEPS_OF_CHARACTER;
  const stars = glob.split(/\*+/).length - 1;
  return stars > 1 ? stars * STEPS_OF_STARS : stars * STEPS_OF_STAR;
}
