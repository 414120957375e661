/** Changes that `disruption.at_most` holds back, as a forecast shows them. */
import type { LateChange } from '../../domain/forecast/hold-back.ts';
import { atMostText } from '../../domain/plan/gates/disruption.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { Outlook } from './outlook.ts';

/** Of more only the number is told. */
const MOST_LINES = 10;

/** Changes that one policy wants at one instant, and that come later. */
interface HeldBack extends Omit<LateChange, 'madeAtMs'> {
  computes: number;
  /** When the last of them is made; null if some never are, since something else is wanted before, or the time ends. */
  lastAtMs: number | null;
}

/** By the instants at which they are wanted. */
function heldBackOf(outlooks: readonly Outlook[]): HeldBack[] {
  const found = new Map<string, HeldBack>();
  for (const { madeAtMs, ...wanted } of outlooks.flatMap(({ late }) => late ?? [])) {
    const key = `${wanted.wantedAtMs} ${wanted.policy}`;
    const known = found.get(key) ?? { ...wanted, computes: 0, lastAtMs: 0 };
    const lastAtMs = known.lastAtMs === null || madeAtMs === undefined ? null : Math.max(known.lastAtMs, madeAtMs);
    found.set(key, { ...known, computes: known.computes + 1, lastAtMs });
  }
  return [...found.values()].sort((a, b) => a.wantedAtMs - b.wantedAtMs);
}

export function heldBackJson(outlooks: readonly Outlook[]) {
  return heldBackOf(outlooks).map(({ policy, limit, wantedAtMs, computes, lastAtMs }) => ({
    ...{ policy, at_most: atMostText(limit), wanted_at: isoInstant(wantedAtMs), computes },
    last_at: lastAtMs === null ? null : isoInstant(lastAtMs),
  }));
}

/** A line for each of the first; none if nothing is held back. */
export function heldBackLines(outlooks: readonly Outlook[]): string[] {
  const all = heldBackOf(outlooks);
  const lines = all.slice(0, MOST_LINES).map(({ policy, limit, wantedAtMs, computes, lastAtMs }) => {
    const many = `${computes} ${computes === 1 ? 'compute' : 'computes'}`;
    const last = lastAtMs === null ? 'some not before something else is wanted' : `the last at ${isoInstant(lastAtMs)}`;
    return `Held back by at_most ${atMostText(limit)} of ${policy} at ${isoInstant(wantedAtMs)}, if all are awake: ${many}, ${last}.`;
  });
  const more = all.length - lines.length;
  return more > 0 ? [...lines, `The same ${more} more times: --json lists them.`] : lines;
}
