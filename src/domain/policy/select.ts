import type { ComputeIdentity } from '../compute/compute.ts';
import type { SelectorKeys } from './selector.ts';

/** The result of a selector; `unknown` if it depends on facts that could not be read. */
export type Selection = 'yes' | 'no' | 'unknown';

/** Matches a compute; its minimum age is compared at an instant (milliseconds since the epoch). */
export type ComputeMatcher = (compute: ComputeIdentity, nowMs: number) => Selection;

/** The instant at which to match in order to select computes of any age. */
export const AT_ANY_AGE = Number.POSITIVE_INFINITY;

type TextTest = (text: string) => boolean;

/** The names of an object, one of which a glob must match. */
interface Names {
  known: readonly string[];
  /** True if another name could not be read. */
  isPartial: boolean;
}

/**
 * Compiles a selector. All given keys must match. Of a list of globs at least one must match, and none that starts with `!`, in any
 * order; case matters. A compute younger than `minAgeMs` is never selected. Unknown facts make the result unknown only if the known
 * ones don't decide it (Kleene's three-valued logic).
 */
export function compileSelector(selector: SelectorKeys): ComputeMatcher {
  const { types, branchRoles, share, minAgeMs } = selector;
  const keys: ((compute: ComputeIdentity) => Selection)[] = projectKeys(selector);
  const addGlobKey = (globs: readonly string[] | undefined, namesOf: (compute: ComputeIdentity) => Names) => {
    if (!globs) return;
    const matches = compileGlobs(globs);
    keys.push((compute) => matches(namesOf(compute)));
  };
  addGlobKey(selector.branches, ({ branchId, branchName }) => toNames(branchId, branchName));
  addGlobKey(selector.computes, ({ computeId }) => toNames(computeId));
  addGlobKey(selector.regions, ({ regionId }) => toNames(regionId));
  if (types) keys.push(({ type }) => selectionIf(types.includes(type)));
  if (branchRoles) {
    keys.push(({ branchRoles: roles }) =>
      roles ? selectionIf(branchRoles.some((role) => roles.includes(role))) : 'unknown',
    );
  }
  if (share !== undefined) keys.push(({ computeId }) => selectionIf(hashFraction(computeId) < share));
  return (compute, nowMs) =>
    nowMs - compute.createdAtMs < minAgeMs ? 'no' : all(keys.map((matches) => matches(compute)));
}

/** The facts by which a whole project is selected. */
export type ProjectNames = Pick<ComputeIdentity, 'account' | 'projectId' | 'projectName' | 'projectNameUnknown'>;

type ProjectKeys = Pick<SelectorKeys, 'accounts' | 'projects' | 'scope'>;

function projectKeys({ accounts, projects, scope }: ProjectKeys): ((project: ProjectNames) => Selection)[] {
  const matchesAccount = accounts && compileGlobs(accounts);
  return [
    ...(matchesAccount ? [({ account }: ProjectNames) => matchesAccount(toNames(account))] : []),
    ...[projects, scope].flatMap((globs) => {
      if (!globs) return [];
      const matches = compileGlobs(globs);
      return ({ projectId, projectName, projectNameUnknown }: ProjectNames) =>
        matches(toNames(projectId, projectNameUnknown ? undefined : projectName));
    }),
  ];
}

/** Compiles the project keys of a selector, or the projects of a team; the result also works for projects without computes. */
export function compileProjectSelector(selector: ProjectKeys): (project: ProjectNames) => Selection {
  const keys = projectKeys(selector);
  return (project) => all(keys.map((matches) => matches(project)));
}

function toNames(...names: readonly (string | undefined)[]): Names {
  const known = names.filter((name) => name !== undefined);
  return { known, isPartial: known.length < names.length };
}

function selectionIf(isSelected: boolean): Selection {
  return isSelected ? 'yes' : 'no';
}

function not(selection: Selection): Selection {
  return selection === 'unknown' ? 'unknown' : selectionIf(selection === 'no');
}

function all(selections: readonly Selection[]): Selection {
  if (selections.includes('no')) return 'no';
  return selections.includes('unknown') ? 'unknown' : 'yes';
}

/** Maps an id to a stable number in [0, 1): FNV-1a with a final mix, since ids of one fleet are similar. */
export function hashFraction(id: string): number {
  let hash = 0x811c9dc5;
  for (const character of id) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** Splits globs into those that include and, without their `!`, those that exclude. */
export function splitGlobs(globs: readonly string[]): { includes: string[]; excludes: string[] } {
  const excludes = globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1));
  return { includes: globs.filter((glob) => !glob.startsWith('!')), excludes };
}

function compileGlobs(globs: readonly string[]): (names: Names) => Selection {
  const split = splitGlobs(globs);
  const [includes, excludes] = [compileTests(split.includes), compileTests(split.excludes)];
  const anyMatches = (tests: readonly TextTest[], { known: names, isPartial }: Names): Selection => {
    if (tests.some((test) => names.some((name) => test(name)))) return 'yes';
    return isPartial && tests.length > 0 ? 'unknown' : 'no';
  };
  return (names) => all([anyMatches(includes, names), not(anyMatches(excludes, names))]);
}

/** Combines globs without wildcards into a single look-up. */
function compileTests(globs: readonly string[]): TextTest[] {
  const plain = new Set(globs.filter((glob) => !WILDCARD.test(glob)));
  const tests = globs.filter((glob) => WILDCARD.test(glob)).map(compileGlob);
  return plain.size > 0 ? [(text) => plain.has(text), ...tests] : tests;
}

const WILDCARD = /[*?]/;

/** Compiles a glob: `*` matches any text, including slashes and the empty text; `?` matches one character. */
export function compileGlob(glob: string): TextTest {
  if (!WILDCARD.test(glob)) return (text) => text === glob;
  if (!glob.includes('?')) return compileStars(glob);
  // Most names already differ in the beginning; only the others are split into characters.
  const [head = ''] = glob.split(/[*?]/, 1);
  const pattern = Array.from(glob.replaceAll(/\*+/g, '*'));
  return (text) => text.startsWith(head) && matchesPattern(pattern, Array.from(text));
}

/** Compiles a glob with stars only: searches the parts between stars in order, each as early as possible. */
function compileStars(glob: string): TextTest {
  const parts = glob.split(/\*+/);
  const head = parts.shift() ?? '';
  const tail = parts.pop() ?? '';
  return (text) => {
    if (!text.startsWith(head) || !text.endsWith(tail)) return false;
    let from = head.length;
    for (const part of parts) {
      const index = text.indexOf(part, from);
      if (index < 0) return false;
      from = index + part.length;
    }
    return from + tail.length <= text.length;
  };
}

/** Matches greedily and backtracks only to the last `*`: at most pattern × text steps, where a regular expression could be exponential. */
function matchesPattern(pattern: readonly string[], text: readonly string[]): boolean {
  let patternAt = 0;
  let textAt = 0;
  let starAt = -1;
  let starTextAt = 0;
  while (textAt < text.length) {
    const wanted = pattern[patternAt];
    if (wanted === '*') {
      starAt = patternAt;
      starTextAt = textAt;
      patternAt += 1;
    } else if (wanted === '?' || wanted === text[textAt]) {
      patternAt += 1;
      textAt += 1;
    } else if (starAt >= 0) {
      starTextAt += 1;
      textAt = starTextAt;
      patternAt = starAt + 1;
    } else {
      return false;
    }
  }
  return pattern.slice(patternAt).every((rest) => rest === '*');
}
