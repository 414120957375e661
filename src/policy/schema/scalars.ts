import { IANAZone } from 'luxon';
import { z } from 'zod';
import { didYouMean } from '../../common/names.ts';
import {
  DEFAULT_SUSPEND_TIMEOUT_SECONDS,
  type Size as DomainSize,
  NEVER_SUSPENDS,
} from '../../domain/compute/compute.ts';
import {
  COMPUTE_SIZES_CU,
  impossibleSizeText,
  isAllowedSize,
  sizeProblems,
} from '../../domain/compute/compute-units.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { POLICY_LIMITS } from '../limits.ts';
import { DURATION_PATTERN, SIZE_PATTERN, SUSPEND_AFTER_PATTERN } from './patterns.ts';

/** The `error` option of a schema, for the message `expected WHAT`. */
export function expected(what: string): { error: (issue: { code?: string | undefined }) => string | undefined } {
  return { error: (issue) => (issue.code === 'unrecognized_keys' ? undefined : `expected ${what}`) };
}

/** A mapping that refuses unknown keys. Their error message has a line for each of them, in the order of the issue's keys. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape, what = 'a mapping') {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return `expected ${what}`;
      return (issue.keys as string[])
        .slice(0, POLICY_LIMITS.problemsPerFile)
        .map((key) => unknownKey(key, known))
        .join('\n');
    },
  });
}

/** Keys of a file that are often mistaken for keys of a policy. */
const KEYS_OF_FILE: readonly string[] = ['owner', 'timezone', 'sources', 'calendars', 'groups'];

function unknownKey(key: string, known: readonly string[]): string {
  if (KEYS_OF_FILE.includes(key))
    return `unknown key "${key}" here; write it at the top of the file, for all its policies`;
  const suggestion = didYouMean(key, known) || `; expected ${known.map((name) => `"${name}"`).join(', ')}`;
  return `unknown key ${JSON.stringify(key.slice(0, 60))}${suggestion}`;
}

const DURATION = /^(?=\d)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/;

/** Milliseconds of a duration such as `90s`, `5m`, `1h30m`, `7d`; undefined for any other text. */
export function parseDurationMs(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match) return undefined;
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = match;
  return Number(days) * DAY_MS + Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS + Number(seconds) * 1000;
}

/** A duration within bounds, parsed to milliseconds. `text` is the bounds, such as `1m to 7d`. */
export function duration({ minMs, maxMs, text }: { minMs: number; maxMs: number; text: string }) {
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

const SUSPEND_AFTER_FORMS = '"never", "default", or a duration of 1m to 7d such as "5m"';

/** The timeout, parsed to canonical seconds: −1 for never, otherwise 60..604800. */
export const SuspendAfter = z
  .string(expected(SUSPEND_AFTER_FORMS))
  .meta({ title: 'never, default, or a duration, 1m to 7d', pattern: SUSPEND_AFTER_PATTERN })
  .describe('How long a compute is idle before it sleeps: 1m to 7d, never, or default (5m).')
  .transform((value, context) => {
    if (value === 'never') return NEVER_SUSPENDS;
    if (value === 'default') return DEFAULT_SUSPEND_TIMEOUT_SECONDS;
    const ms = parseDurationMs(value);
    if (ms !== undefined && ms >= MINUTE_MS && ms <= 7 * DAY_MS) return ms / 1000;
    context.issues.push({ code: 'custom', message: `expected ${SUSPEND_AFTER_FORMS}`, input: value });
    return z.NEVER;
  });

const SIZE_FORMS = 'a size in CU: fixed such as 2, a range such as 1-4, or {min: 1, max: 4}';
const SIZE_RANGE = /^(\d{1,3}(?:\.\d{1,4})?)(?:\s*-\s*(\d{1,3}(?:\.\d{1,4})?))?$/;
const cu = z.number(expected('a number of CU')).meta({ title: 'a size in CU', enum: [...COMPUTE_SIZES_CU] });

/** A size, parsed to a range in CU that the platform allows. */
export const Size = z
  .union(
    [
      cu,
      z.string().regex(SIZE_RANGE, `expected ${SIZE_FORMS}`).meta({ pattern: SIZE_PATTERN }),
      mapping({ min: cu.describe('The smallest size, in CU.'), max: cu.describe('The largest.') }, SIZE_FORMS),
    ],
    expected(SIZE_FORMS),
  )
  .meta({ title: 'a size: 2, 1-4 or {min: 1, max: 4}' })
  .describe('Size in compute units (CU): 2 is a fixed size; 1-4 or {min: 1, max: 4} an autoscaling range.')
  .transform((value, context): DomainSize => {
    const size = toSize(value);
    for (const message of sizeProblems(size)) context.issues.push({ code: 'custom', message, input: value });
    return size;
  });

function toSize(value: number | string | { min: number; max: number }): DomainSize {
  if (typeof value === 'number') return { minCu: value, maxCu: value };
  if (typeof value === 'object') return { minCu: value.min, maxCu: value.max };
  const [, min, max = min] = SIZE_RANGE.exec(value) ?? [];
  return { minCu: Number(min), maxCu: Number(max) };
}

/** One size that the platform allows, in CU. */
export function singleSize(what: string) {
  return z
    .number(expected(what))
    .meta({ title: 'a size in CU', enum: [...COMPUTE_SIZES_CU] })
    .superRefine((size, context) => {
      if (!isAllowedSize(size)) context.addIssue({ code: 'custom', message: impossibleSizeText(size) });
    });
}

const SHARE_FORM = 'a share such as "70%", from 1% to 100%';

/** A share, parsed to a number in (0, 1]. */
export const Share = z
  .string(expected(SHARE_FORM))
  .regex(/^([1-9]\d?|100)%$/, `expected ${SHARE_FORM}`)
  .meta({ title: '1% to 100%' })
  .transform((text) => Number(text.slice(0, -1)) / 100);

/** The names of three letters in the zone database. The runtime also accepts ambiguous ones, such as IST. */
const SHORT_NAMES = ['UTC', 'GMT', 'UCT', 'CET', 'EET', 'WET', 'MET', 'EST', 'MST', 'HST', 'PRC', 'ROC', 'ROK'];

const KNOWN_ZONES: ReadonlySet<string> = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC']);

/** The problem of a zone name; undefined for an IANA name. */
export function zoneError(name: string): string | undefined {
  if (KNOWN_ZONES.has(name)) return undefined;
  const known = [...KNOWN_ZONES];
  const isOtherCase = known.some((zone) => zone.toLowerCase() === name.toLowerCase());
  const isShort = name.length <= 3 || name.startsWith('SystemV/');
  const isAlias = !isOtherCase && (isShort ? SHORT_NAMES.includes(name) : IANAZone.isValidZone(name));
  if (isAlias) return undefined;
  const suggestion = didYouMean(name, known) || '; expected an IANA name such as "Europe/Berlin"';
  return `${JSON.stringify(name.slice(0, 60))} is not a time zone${suggestion}`;
}

/** An IANA name of a time zone in the database of this machine. */
export const Zone = z
  .string(expected('an IANA name of a time zone such as "Europe/Berlin"'))
  .describe('IANA name of a time zone, such as Europe/Berlin.')
  .meta({ allOf: [{ $ref: '#/definitions/zone' }] })
  .superRefine((name, context) => {
    const message = zoneError(name);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
