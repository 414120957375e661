/** Of a list at most so many are named. */
const MOST_NAMED = 10;

/** What to say where a project was named and it has several computes: which there are. */
export function severalComputes(project: string, computeIds: readonly string[]): string {
  const named = computeIds.toSorted().slice(0, MOST_NAMED).join(', ');
  const more = computeIds.length > MOST_NAMED ? `, and ${computeIds.length - MOST_NAMED} more` : '';
  return `${project} has ${computeIds.length} computes, name one: ${named}${more}`;
}
