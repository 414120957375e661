/** Computes with equal texts are shown together, with their names. */

/** The most computes of a group that are named; the rest are counted. */
const MOST_NAMES = 8;

export interface AlikeGroup<T, Seen> {
  /** In their order; at least one. */
  members: T[];
  /** The value that they share. */
  seen: Seen;
}

/** Groups computes by equal values, compared as JSON. A group takes the place of its first member. */
export function groupAlike<T, Seen>(all: readonly T[], seenOf: (one: T) => Seen): AlikeGroup<T, Seen>[] {
  const groups = new Map<string, AlikeGroup<T, Seen>>();
  for (const one of all) {
    const seen = seenOf(one);
    const key = JSON.stringify(seen);
    const group = groups.get(key);
    if (group) group.members.push(one);
    else groups.set(key, { members: [one], seen });
  }
  return [...groups.values()];
}

/** The name of one, or `12 computes: a, b, c, d, e, f, g, h, and 4 more`. */
export function namesOf(names: readonly string[]): string {
  if (names.length === 1) return `${names[0]}`;
  const more = names.length > MOST_NAMES ? `, and ${names.length - MOST_NAMES} more` : '';
  return `${names.length} computes: ${names.slice(0, MOST_NAMES).join(', ')}${more}`;
}
