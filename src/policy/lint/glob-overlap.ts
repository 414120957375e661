export interface Glob {
  text: string;
  /** The text before the first wildcard. */
  prefix: string;
  isLiteral: boolean;
  /** True if the text is a prefix and one `*`. */
  isPrefix: boolean;
}

export function toGlob(text: string): Glob {
  const at = text.search(/[*?]/);
  const prefix = at < 0 ? text : text.slice(0, at);
  return { text, prefix, isLiteral: at < 0, isPrefix: text === `${prefix}*` };
}

/** True if two globs differ before the first wildcard of either. False proves nothing. */
export function areApart(a: Glob, b: Glob): boolean {
  const [short, long] = a.prefix.length <= b.prefix.length ? [a, b] : [b, a];
  if (!long.prefix.startsWith(short.prefix)) return true;
  return short.isLiteral && short.prefix.length < long.prefix.length;
}

/** True if some text matches both globs. `*` is any text, `?` one character. O(length × length). */
export function globsMeet(a: string, b: string): boolean {
  const left = Array.from(a.replaceAll(/\*+/g, '*'));
  const right = Array.from(b.replaceAll(/\*+/g, '*'));
  // row[j]: the rest of `left` from the current place on, and the rest of `right` from j on, can match the same text.
  let row = lastRow(right);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    const below = row;
    row = new Array<boolean>(right.length + 1).fill(false);
    row[right.length] = left[i] === '*' && below[right.length] === true;
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const [one, other] = [left[i], right[j]];
      // A star matches nothing more, or one more character of the other side.
      const isStar = one === '*' || other === '*';
      const isSame = one === other || one === '?' || other === '?';
      row[j] = isStar ? below[j] === true || row[j + 1] === true : isSame && below[j + 1] === true;
    }
  }
  return row[0] === true;
}

/** True if `outer` matches every text that `inner` matches. It may be wrongly false, but never wrongly true. */
export function globCovers(outer: string, inner: string): boolean {
  const pattern = Array.from(outer.replaceAll(/\*+/g, '*'));
  const text = Array.from(inner.replaceAll(/\*+/g, '*'));
  let places = new Set([0]);
  for (const character of text) places = step(pattern, places, character);
  return [...places].some((place) => pattern.slice(place).every((rest) => rest === '*'));
}

function lastRow(right: readonly string[]): boolean[] {
  const row = new Array<boolean>(right.length + 1).fill(false);
  row[right.length] = true;
  for (let j = right.length - 1; j >= 0 && right[j] === '*'; j -= 1) row[j] = true;
  return row;
}

/** Places in `pattern` after one more character of the inner glob. A star of the inner glob is any text: only a star covers it. */
function step(pattern: readonly string[], places: ReadonlySet<number>, character: string): Set<number> {
  const next = new Set<number>();
  for (const start of places) {
    for (let at = start; at < pattern.length; at += 1) {
      const wanted = pattern[at];
      if (wanted === '*') next.add(at);
      else if (wanted === character || (wanted === '?' && character !== '*')) next.add(at + 1);
      if (wanted !== '*') break;
    }
  }
  return next;
}
