/** A time span, milliseconds since the epoch. */
export interface Span {
  fromMs: number;
  /** Up to but not including. */
  toMs: number;
}

export function overlaps(a: Span, b: Span): boolean {
  return a.fromMs < b.toMs && b.fromMs < a.toMs;
}

/** The first span that contains an instant. */
export function spanAt<S extends Span>(spans: readonly S[], instantMs: number): S | undefined {
  return spans.find(({ fromMs, toMs }) => fromMs <= instantMs && instantMs < toMs);
}
