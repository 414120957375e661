/** At most this many computes of a group are named. The others are counted. */
const MAX_NAMES = 8;

export interface AlikeGroup<T, Shared> {
  /** At least one, in their order. */
  members: T[];
  /** The value that they have in common. */
  shared: Shared;
}

/** Groups items by equal values, compared as JSON. A group takes the place of its first member. */
export function groupAlike<T, Shared>(all: readonly T[], sharedOf: (one: T) => Shared): AlikeGroup<T, Shared>[] {
  const groups = new Map<string, AlikeGroup<T, Shared>>();
  for (const one of all) {
    const shared = sharedOf(one);
    const key = JSON.stringify(shared);
    const group = groups.get(key);
    if (group) group.members.push(one);
    else groups.set(key, { members: [one], shared });
  }
  return [...groups.values()];
}

/** The only name, or `12 computes: a, b, c, d, e, f, g, h, and 4 more`. */
export function namesOf(names: readonly string[]): string {
  if (names.length === 1) return `${names[0]}`;
  const more = names.length > MAX_NAMES ? `, and ${names.length - MAX_NAMES} more` : '';
  return `${names.length} computes: ${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}
