import type { Size } from '../../domain/compute/compute.ts';
import { formatSize } from '../../domain/compute/settings-text.ts';
import type { Segment } from '../../domain/forecast/walk.ts';

/** Sizes in steps that the eye tells apart. */
export interface Levels {
  /** The step of a size, from 0. */
  of(size: Size): number;
  /** Which sizes each step stands for, from the smallest on. */
  sizes: readonly { level: number; sizes: readonly string[] }[];
}

/** Spreads the sizes that occur over so many steps: the smallest is always the first, the largest the last. */
export function levelsOf(segments: Iterable<Segment>, steps: number): Levels {
  const occurring = new Map<string, Size>();
  for (const segment of segments) occurring.set(formatSize(segment), segment);
  const ascending = [...occurring].sort(([, a], [, b]) => compareSizes(a, b)).map(([text]) => text);
  const levelOf = (text: string) => {
    if (ascending.length === 1) return Math.floor((steps - 1) / 2);
    return Math.round((ascending.indexOf(text) * (steps - 1)) / (ascending.length - 1));
  };
  const levels = new Map(ascending.map((text) => [text, levelOf(text)]));
  const used = [...new Set(levels.values())];
  return {
    of: (size) => levels.get(formatSize(size)) ?? 0,
    sizes: used.map((level) => ({ level, sizes: ascending.filter((text) => levels.get(text) === level) })),
  };
}

/** By the maximum, then by the minimum. */
export function compareSizes(a: Size, b: Size): number {
  return a.maxCu - b.maxCu || a.minCu - b.minCu;
}
