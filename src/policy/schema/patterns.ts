/** JSON Schema patterns for editors. Each accepts all that the parser accepts, and refuses obvious mistakes. */
import { COMPUTE_SIZES_CU, sizeProblems } from '../../domain/compute/compute-units.ts';

/** The pattern of a number, with any leading and trailing zeros. */
function digits(cu: number): string {
  const [whole, part = ''] = `${cu}`.split('.');
  return part === '' ? String.raw`0*${whole}(\.0+)?` : String.raw`0*${whole}\.${part}0*`;
}

function oneOf(sizes: readonly number[]): string {
  return `(${sizes.map(digits).join('|')})`;
}

const RANGES = COMPUTE_SIZES_CU.map((minCu) => {
  const upTo = COMPUTE_SIZES_CU.filter((maxCu) => sizeProblems({ minCu, maxCu }).length === 0);
  return String.raw`${digits(minCu)}\s*-\s*${oneOf(upTo)}`;
});
const ANY_SIZE = oneOf(COMPUTE_SIZES_CU);

export const SIZE_PATTERN = `^(${ANY_SIZE}|${RANGES.join('|')})$`;
export const SIZE_BOUNDS_PATTERN = String.raw`^${ANY_SIZE}\s*-\s*${ANY_SIZE}$`;

const LENGTH = String.raw`(?=\d)(\d{1,6}d)?(\d{1,6}h)?(\d{1,6}m)?(\d{1,6}s)?`;
export const DURATION_PATTERN = `^${LENGTH}$`;
export const SUSPEND_AFTER_PATTERN = `^(never|default|${LENGTH})$`;

export const CRON_PATTERN = String.raw`^\s*(\S+\s+){4}\S+\s*$`;

const DAY = '(Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const DAYS = String.raw`${DAY}(-${DAY})?(\s*,\s*${DAY}(-${DAY})?)*`;
const CLOCK = String.raw`([01]\d|2[0-3]):[0-5]\d`;
const END = `(${CLOCK}|24:00)`;
const RANGE = String.raw`${CLOCK}\s*-\s*${END}`;
const ZONE = String.raw`(\s+[A-Za-z][\w/+-]*)?`;
const INSTANT = String.raw`\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?`;
const TIMES = [
  'always',
  `${DAYS}${ZONE}`,
  String.raw`(${DAYS}\s+)?${RANGE}${ZONE}`,
  String.raw`${DAY}\s+${CLOCK}\s*-\s*${DAY}\s+${END}${ZONE}`,
  `${INSTANT}/${INSTANT}${ZONE}`,
];
export const TIME_PATTERN = String.raw`^\s*(${TIMES.join('|')})\s*$`;
