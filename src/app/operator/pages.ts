import { ascending } from '../../domain/sorted.ts';
import { MOST_PER_PAGE, type Page, type PageQuery } from '../../ports/operator.ts';

/** The part of a list that comes after a key; keys are compared as text, so the list need not stand still between pages. */
export function pageOf<T>(items: readonly T[], keyOf: (item: T) => string, { after, limit }: PageQuery): Page<T> {
  const sorted = items.map((item) => ({ item, key: keyOf(item) })).toSorted((a, b) => ascending(a.key, b.key));
  const rest = after === undefined ? sorted : sorted.filter(({ key }) => key > after);
  const shown = rest.slice(0, boundedLimit(limit));
  return { items: shown.map(({ item }) => item), next: (rest.length > shown.length && shown.at(-1)?.key) || null };
}

export function boundedLimit(limit: number): number {
  return Math.min(Math.max(1, Math.floor(limit)), MOST_PER_PAGE);
}
