import { offsetChangeBetween, offsetMsAt } from '../../domain/time/windows/zone-offset.ts';
import type { Period } from './openings.ts';

const WEEK_MS = 7 * 86_400_000;

/** Local times that a zone skips, strictly between both; milliseconds since the epoch as they would be in UTC. */
export interface Gap {
  fromLocalMs: number;
  toLocalMs: number;
}

/** The gaps of a zone within a period, the first one first. */
export function gapsOf(zone: string, { nowMs, endMs }: Period): Gap[] {
  const gaps: Gap[] = [];
  for (let atMs = nowMs; atMs < endMs; atMs += WEEK_MS) {
    const untilMs = Math.min(atMs + WEEK_MS, endMs);
    const before = offsetMsAt(zone, atMs);
    const after = offsetMsAt(zone, untilMs);
    if (after <= before) continue;
    const changeMs = offsetChangeBetween(zone, atMs, untilMs);
    gaps.push({ fromLocalMs: changeMs + before, toLocalMs: changeMs + after });
  }
  return gaps;
}
