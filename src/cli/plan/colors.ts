import { createColors } from 'picocolors';

/** Colours for a stream: only on a terminal that has them, and not where NO_COLOR is set. */
export function colorsOf(stream: { isTTY?: boolean; hasColors?(): boolean }): ReturnType<typeof createColors> {
  return createColors(stream.isTTY === true && stream.hasColors?.() === true);
}
