import { closestMatch } from 'leven';

/** ` did you mean "x"?` with a leading semicolon, or nothing when no candidate is near. Case alone is always near. */
export function didYouMean(text: string, candidates: readonly string[]): string {
  const match = nearest(text, candidates);
  return match === undefined ? '' : `; did you mean "${match}"?`;
}

function nearest(text: string, candidates: readonly string[]): string | undefined {
  if (text.length > 100) return undefined;
  const lower = text.toLowerCase();
  const sameLetters = candidates.find((candidate) => candidate.toLowerCase() === lower);
  if (sameLetters !== undefined) return sameLetters;
  const maxDistance = Math.max(1, Math.min(3, Math.floor(text.length / 3)));
  return closestMatch(text, [...candidates], { maxDistance });
}
