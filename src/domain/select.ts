import type { Compute } from './compute.ts';
import type { Selector } from './policy.ts';

/** True if the compute is selected at an instant (milliseconds since the epoch: computes come of age). */
export type ComputeMatcher = (compute: Compute, nowMs: number) => boolean;

type TextTest = (text: string) => boolean;

/**
 * Makes a selector ready to be asked often. Every key that is given must match. In a list of globs one must match and
 * none that starts with `!` may, in whatever order they stand; upper and lower case differ. A compute younger than
 * `minAgeMs` is never selected.
 */
export function compileSelector(selector: Selector): ComputeMatcher {
  const { types, branchRoles, share, minAgeMs } = selector;
  const keys: ComputeMatcher[] = [];
  const byGlobs = (globs: readonly string[] | undefined, namesOf: (compute: Compute) => string[]) => {
    if (!globs) return;
    const matches = compileGlobs(globs);
    keys.push((compute) => matches(namesOf(compute)));
  };
  byGlobs(selector.accounts, (compute) => [compute.account]);
  byGlobs(selector.projects, (compute) => [compute.projectId, compute.projectName]);
  byGlobs(selector.branches, ({ branchId, branchName }) =>
    branchName === undefined ? [branchId] : [branchId, branchName],
  );
  byGlobs(selector.computes, (compute) => [compute.computeId]);
  byGlobs(selector.regions, (compute) => [compute.regionId]);
  if (types) keys.push((compute) => types.includes(compute.type));
  if (branchRoles) keys.push((compute) => branchRoles.some((role) => compute.branchRoles?.includes(role)));
  if (share !== undefined) keys.push((compute) => partOf(compute.computeId) < share);
  return (compute, nowMs) =>
    nowMs - compute.createdAtMs >= minAgeMs && keys.every((matches) => matches(compute, nowMs));
}

/** Where an id stands in [0, 1), the same for ever: FNV-1a with a final mix, since ids of one fleet look alike. */
function partOf(id: string): number {
  let hash = 0x811c9dc5;
  for (const character of id) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

function compileGlobs(globs: readonly string[]): (names: readonly string[]) => boolean {
  const includes = globs.filter((glob) => !glob.startsWith('!')).map(compileGlob);
  const excludes = globs.filter((glob) => glob.startsWith('!')).map((glob) => compileGlob(glob.slice(1)));
  const anyMatches = (tests: readonly TextTest[], names: readonly string[]) =>
    tests.some((test) => names.some((name) => test(name)));
  return (names) => anyMatches(includes, names) && !anyMatches(excludes, names);
}

/** `*` is any text, also none, also with slashes; `?` is one character; everything else is itself. */
export function compileGlob(glob: string): TextTest {
  const firstWildcard = glob.search(/[*?]/);
  if (firstWildcard < 0) return (text) => text === glob;
  // Most names fail by their beginning already, and most globs have one star: no name is taken apart for those.
  const head = glob.slice(0, firstWildcard);
  const [, tail] = /^[^*?]*\*+([^*?]*)$/.exec(glob) ?? [];
  if (tail !== undefined) {
    const fixedLength = head.length + tail.length;
    return (text) => text.length >= fixedLength && text.startsWith(head) && text.endsWith(tail);
  }
  const pattern = Array.from(glob.replaceAll(/\*+/g, '*'));
  return (text) => text.startsWith(head) && matchesPattern(pattern, Array.from(text));
}

/** Greedy with one step back to the last `*`: time at most pattern × text, where a regular expression could explode. */
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
