import { closestMatch } from 'leven';

/** `; did you mean "policies"?` if a known word is near enough to be a slip of the fingers, else nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const maxDistance = Math.max(1, Math.floor(word.length / 3));
  const nearest = closestMatch(word, [...known], { maxDistance });
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}
