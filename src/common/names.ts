import { closestMatch } from 'leven';

/** Text such as `; did you mean "x"?`; empty if no candidate is near. Case and the order of letters don't matter. */
export function didYouMean(text: string, candidates: readonly string[]): string {
  const match = nearest(text, candidates);
  return match === undefined ? '' : `; did you mean "${match}"?`;
}

function lettersOf(text: string): string {
  return Array.from(text.toLowerCase()).sort().join('');
}

/** True for `web`, `Web` and `wbe`. */
export function haveSameLetters(a: string, b: string): boolean {
  return lettersOf(a) === lettersOf(b);
}

/** The candidate that was probably meant; undefined if none is near. */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  if (text.length > 100) return undefined;
  const lower = text.toLowerCase();
  const near =
    candidates.find((candidate) => candidate.toLowerCase() === lower) ??
    candidates.find((candidate) => haveSameLetters(candidate, text));
  if (near !== undefined) return near;
  const maxDistance = Math.max(1, Math.min(3, Math.floor(text.length / 3)));
  return closestMatch(text, [...candidates], { maxDistance });
}

/** The first names and the number of the others, such as `a, b and 4 more`. */
export function firstNames(names: readonly string[], most = 10): string {
  const shown = names.slice(0, most).join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** The message for a name that means a project with several computes. */
export function severalComputes(project: string, computeIds: readonly string[]): string {
  return `${project} has ${computeIds.length} computes, name one: ${firstNames(computeIds.toSorted())}`;
}

/** Such as `1 project` or `12 projects`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function countedComputes(count: number): string {
  return counted(count, 'compute');
}
