import { InvalidArgumentError } from 'commander';
import type { Variant } from '../../domain/backtest/backtest.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { parseDurationMs, Share } from '../../policy/schema/scalars.ts';

const MAX_VALUES = 10;
const USUAL_TARGETS = [0.6, 0.7, 0.8];
const USUAL_WINDOWS = [15 * MINUTE_MS, 30 * MINUTE_MS, 60 * MINUTE_MS];

/** `60%,70%`: shares. */
export function parseTargets(text: string): number[] {
  return listOf(text, (one) => Share.safeParse(one).data, 'a share such as 70%, from 1% to 100%');
}

/** `15m,1h`: milliseconds. */
export function parseWindows(text: string): number[] {
  const read = (one: string) => {
    const ms = parseDurationMs(one);
    return ms !== undefined && ms >= MINUTE_MS && ms <= 7 * DAY_MS ? ms : undefined;
  };
  return listOf(text, read, 'a duration of 1m to 7d, such as 30m');
}

/**
 * Variants of the policy: every given target with every given window. By default usual targets and usual windows, of which one is changed at a
 * time.
 */
export function variantsOf(
  { targetShare, scaleDownAfterMs: windowMs }: HeadroomPolicy,
  { targets, windows }: { targets?: readonly number[] | undefined; windows?: readonly number[] | undefined },
): Variant[] {
  const isAsked = targets !== undefined || windows !== undefined;
  const grid = isAsked
    ? (targets ?? [targetShare]).flatMap((target) => (windows ?? [windowMs]).map((ms) => variant(target, ms)))
    : [
        ...USUAL_TARGETS.map((target) => variant(target, windowMs)),
        ...USUAL_WINDOWS.map((ms) => variant(targetShare, ms)),
      ];
  const others = grid.filter((one) => one.targetShare !== targetShare || one.windowMs !== windowMs);
  const unique = new Map(others.map((one) => [`${one.targetShare} ${one.windowMs}`, one]));
  return [...unique.values()].sort((a, b) => a.targetShare - b.targetShare || a.windowMs - b.windowMs);
}

function variant(targetShare: number, windowMs: number): Variant {
  return { targetShare, windowMs };
}

function listOf(text: string, read: (one: string) => number | undefined, expected: string): number[] {
  const values = text.split(',').map((one) => read(one.trim()));
  if (values.length > MAX_VALUES)
    throw new InvalidArgumentError(`expected at most ${MAX_VALUES}, separated by commas.`);
  const known = values.filter((value) => value !== undefined);
  if (known.length === values.length) return known;
  throw new InvalidArgumentError(`expected ${expected}, several separated by commas.`);
}
