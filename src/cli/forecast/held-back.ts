import { countedComputes } from '../../common/names.ts';
import type { DelayedChange } from '../../domain/forecast/hold-back.ts';
import { atMostText } from '../../domain/plan/gates/disruption.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Outlook } from './outlook.ts';

/** The text lists this many delayed changes, and counts the rest. */
const MAX_LINES = 10;

/** Changes that one policy wants at one instant and that `disruption.at_most` delays. */
interface HeldBack extends Omit<DelayedChange, 'madeAtMs'> {
  computes: number;
  /** When the last of the changes is made. Null if one is never made, since something else is wanted before, or the span ends. */
  lastAtMs: number | null;
}

/** The delayed changes of all computes, in the order of the instants at which they are wanted. */
function heldBackOf(outlooks: readonly Outlook[]): HeldBack[] {
  const found = new Map<string, HeldBack>();
  for (const { madeAtMs, ...wanted } of outlooks.flatMap(({ late }) => late ?? [])) {
    const key = `${wanted.wantedAtMs} ${wanted.policy}`;
    const before = found.get(key) ?? { ...wanted, computes: 0, lastAtMs: 0 };
    const lastAtMs = before.lastAtMs === null || madeAtMs === undefined ? null : Math.max(before.lastAtMs, madeAtMs);
    found.set(key, { ...before, computes: before.computes + 1, lastAtMs });
  }
  return [...found.values()].sort((a, b) => a.wantedAtMs - b.wantedAtMs);
}

export function heldBackJson(outlooks: readonly Outlook[]) {
  return heldBackOf(outlooks).map(({ policy, limit, wantedAtMs, computes, lastAtMs }) => ({
    policy,
    at_most: atMostText(limit),
    wanted_at: isoInstant(wantedAtMs),
    computes,
    last_at: lastAtMs === null ? null : isoInstant(lastAtMs),
  }));
}

export function heldBackLines(outlooks: readonly Outlook[]): string[] {
  const all = heldBackOf(outlooks);
  const lines = all.slice(0, MAX_LINES).map(({ policy, limit, wantedAtMs, computes, lastAtMs }) => {
    const last = lastAtMs === null ? 'some not before something else is wanted' : `the last at ${isoInstant(lastAtMs)}`;
    return `Held back by at_most ${atMostText(limit)} of ${policy} at ${isoInstant(wantedAtMs)}, if all are awake: ${countedComputes(computes)}, ${last}.`;
  });
  const more = all.length - lines.length;
  return more > 0 ? [...lines, `The same ${more} more times: --json lists them.`] : lines;
}
