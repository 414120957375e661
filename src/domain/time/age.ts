import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './units.ts';

/** Each unit, and the duration up to which it is used: `119 s` says more than `2 min`. */
const UNITS = [
  ['s', SECOND_MS, 2 * MINUTE_MS],
  ['min', MINUTE_MS, 2 * HOUR_MS],
  ['h', HOUR_MS, 2 * DAY_MS],
  ['d', DAY_MS, Number.POSITIVE_INFINITY],
] as const;

/** A rounded duration: `12 s`, `5 min`, `3 h`, `4 d`. A negative one, from a clock that is a little ahead, is `0 s`. */
export function spanText(ms: number): string {
  const [name, unitMs] = UNITS.find(([, , belowMs]) => ms < belowMs) ?? UNITS[3];
  return `${Math.max(0, Math.round(ms / unitMs))} ${name}`;
}

/** `12 s ago`. */
export function ageText(atMs: number, nowMs: number): string {
  return `${spanText(nowMs - atMs)} ago`;
}
