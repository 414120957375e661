/** Values of documents as people read them. Instants are UTC. */

import { formatUsd } from '../../../domain/compute/cost.ts';
import { formatSize, formatSuspendTimeout } from '../../../domain/compute/settings-text.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../domain/time/units.ts';
import type { CostsDocument } from '../../../ports/cost-documents.ts';
import type { FreezeDocument, HoldDocument, SettingsDocument } from '../../../ports/documents.ts';

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** `1-4 CU`, or what stands for no value. */
export function sizeWords({ min_cu: minCu, max_cu: maxCu }: Omit<SettingsDocument, 'suspend_timeout_seconds'>): string {
  return minCu === null || maxCu === null ? 'as it is' : `${formatSize({ minCu, maxCu })} CU`;
}

export function timeoutWords(seconds: number | null): string {
  return seconds === null ? 'as it is' : formatSuspendTimeout(seconds);
}

export function suspendWords(seconds: number | null): string {
  if (seconds === null) return 'suspends as it does';
  return seconds === -1 ? 'never suspends' : `suspends after ${timeoutWords(seconds)}`;
}

/** Weekday and time within the next days or the last, else the date. */
export function instantWords(iso: string, nowIso: string): string {
  const [date = '', time = ''] = iso.split('T');
  const clock = time.slice(0, 5);
  const away = Date.parse(iso) - Date.parse(nowIso);
  if (iso.slice(0, 10) === nowIso.slice(0, 10)) return clock;
  if (away > 0 && away < 7 * DAY_MS) return `${DAYS[new Date(iso).getUTCDay()]} ${clock}`;
  return `${date} ${clock}`;
}

/** `in 2 h 15 min`, `3 d ago`. */
export function distanceWords(iso: string, nowIso: string): string {
  const away = Date.parse(iso) - Date.parse(nowIso);
  const length = durationWords(Math.abs(away));
  return away < 0 ? `${length} ago` : `in ${length}`;
}

/** The two largest units that matter. */
function durationWords(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  const [unit, larger, smaller, name] = ms < DAY_MS ? [MINUTE_MS, HOUR_MS, 'min', 'h'] : [HOUR_MS, DAY_MS, 'h', 'd'];
  const rest = Math.floor((ms % Number(larger)) / Number(unit));
  return `${Math.floor(ms / Number(larger))} ${name}${rest === 0 ? '' : ` ${rest} ${smaller}`}`;
}

export function holdWords({ size, suspend_timeout_seconds: timeout, freeze, limited }: HoldDocument): string {
  const parts = [
    ...(size ? [sizeWords(size)] : []),
    ...(timeout === null ? [] : [suspendWords(timeout)]),
    ...(freeze ? ['kept as it is'] : []),
    ...(limited === null ? [] : [limited]),
  ];
  return parts.join(', ');
}

export function freezeWords({ select, allow_raise }: FreezeDocument): string {
  const raises = allow_raise ? ', raises allowed' : '';
  if (select === 'all') return `all computes${raises}`;
  const keys = Object.entries(select).filter(([key]) => key !== 'minAgeMs');
  return `${keys.map(([key, value]) => `${key} ${[value].flat().join(', ')}`).join('; ')}${raises}`;
}

/** Made once: `toLocaleString` makes a format at each call, and a page may have thousands of numbers. */
const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** `1,234.5`. */
export function numberWords(value: number): string {
  return NUMBER.format(value);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${numberWords(count)} ${count === 1 ? one : many}`;
}

type Costs = CostsDocument['total'];

const WHY_NOT = { too_few_days: ', projected from a week of known days on', too_wide: ', too uncertain to project' };

/** `$12.30 so far, $40 to $52 projected`; CU-hours where the price is not known. */
export function costWords({ cu_hours: hours, usd, projected_usd: projected, not_projected: why }: Costs): string {
  if (usd === null) return `${hours.toLocaleString('en')} CU-hours so far, price unknown: set plan: in ebb.yaml`;
  const month = projected
    ? `, ${formatUsd(projected.low)} to ${formatUsd(projected.high)} projected`
    : why && WHY_NOT[why];
  return `${formatUsd(usd)} so far${month ?? ''}`;
}

/** `$12.30 to $40.00`; CU-hours where the price is not known. */
export function savedWords({ cu_hours: hours, usd }: NonNullable<CostsDocument['would_have_saved']>): string {
  if (usd) return `${formatUsd(usd.low)} to ${formatUsd(usd.high)}`;
  return `${hours.low.toLocaleString('en')} to ${hours.high.toLocaleString('en')} CU-hours`;
}
