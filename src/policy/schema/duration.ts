import { z } from 'zod';
import { expected } from './expected.ts';
import { DURATION_PATTERN } from './patterns.ts';

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const;
const DURATION = /^(?=\d)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/;

/** Milliseconds of a duration such as `90s`, `5m`, `1h30m`, `7d`; undefined if it is none. */
export function parseDurationMs(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match) return undefined;
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = match;
  return (
    Number(days) * UNITS_MS.d + Number(hours) * UNITS_MS.h + Number(minutes) * UNITS_MS.m + Number(seconds) * UNITS_MS.s
  );
}

interface Bounds {
  minMs: number;
  maxMs: number;
  /** The bounds as the language writes them, for example `1m to 7d`. */
  text: string;
}

/** A duration within bounds, in milliseconds once parsed. */
export function duration({ minMs, maxMs, text }: Bounds) {
  const what = `a duration of ${text}, such as "90s", "5m", "1h30m"`;
  return z
    .string(expected(what))
    .meta({ title: `a duration, ${text}`, pattern: DURATION_PATTERN })
    .transform((value, context) => {
      const ms = parseDurationMs(value);
      if (ms !== undefined && ms >= minMs && ms <= maxMs) return ms;
      context.issues.push({ code: 'custom', message: `expected ${what}`, input: value });
      return z.NEVER;
    });
}

export const MINUTE_MS = UNITS_MS.m;
export const DAY_MS = UNITS_MS.d;
