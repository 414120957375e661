import { type ComputeSettings, hasSettings } from '../compute/compute.ts';
import type { Segment } from './walk.ts';

/** A stretch of time in which two forecasts of a compute differ, each with the same values all along. */
export interface Difference {
  fromMs: number;
  /** Up to but not including. */
  toMs: number;
  before: ComputeSettings & { policies: readonly string[] };
  after: ComputeSettings & { policies: readonly string[] };
}

/** Where two forecasts of the same span differ in a value, ascending. Who decided it may differ without being a difference. */
export function differencesOf(before: readonly Segment[], after: readonly Segment[]): Difference[] {
  const found: Difference[] = [];
  let place = 0;
  for (const old of before) {
    // The one in which `old` begins was the last that the one before it overlapped.
    while (after[place] && (after[place]?.toMs ?? 0) <= old.fromMs) place += 1;
    for (let index = place; (after[index]?.fromMs ?? old.toMs) < old.toMs; index += 1) {
      const segment = after[index];
      if (!segment || hasSettings(old, segment)) continue;
      const fromMs = Math.max(old.fromMs, segment.fromMs);
      found.push({ fromMs, toMs: Math.min(old.toMs, segment.toMs), before: old, after: segment });
    }
  }
  return found;
}
