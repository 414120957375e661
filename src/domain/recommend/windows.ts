/** Finds the hours of the week in which a compute is used, in the zone of its users. */

import { sum } from '../sum.ts';
import type { Span } from '../time/span.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import { constantOffsetAround, instantOfMinute, localDayAt, weekdayOf } from '../time/windows/local-time.ts';

const SLOT_MS = HOUR_MS / 2;
const SLOTS_PER_DAY = DAY_MS / SLOT_MS;
const SLOTS_PER_WEEK = 7 * SLOTS_PER_DAY;
/** The half hour of the week in which 1970 began. */
const EPOCH_SLOT = (weekdayOf(0) - 1) * SLOTS_PER_DAY;

/** A half hour belongs to a window if it is used in at least this share of the weeks. */
const USED_SHARE = 0.4;
/** More windows, or windows with fewer minutes a week, are noise. */
const MAX_WINDOWS = 3;
const MIN_WEEK_MINUTES = 300;
/** Runs of several days whose ends differ by at most this are one window. */
const SAME_MINUTES = 60;
const MIN_WINDOW_SLOTS = 3;
/** Pauses up to two hours, such as lunch, stay in a window. */
const LONGEST_PAUSE_SLOTS = 4;
/** Windows that cover a larger share of the week save next to nothing. */
const MAX_WEEK_SHARE = 0.75;
/** This share of the public holidays in the data must be unused. */
const UNUSED_HOLIDAYS = 0.75;
/** A holiday only counts on a weekday that is usually used for at least this many half hours. */
const MIN_USUAL_SLOTS = 4;
/** A holiday is unused if its use is at most this share of the usual. */
const MAX_HOLIDAY_USE = 0.4;
/** Zones count as equally sharp from this share of the best sharpness on. */
const EQUALLY_SHARP = 0.999;

interface CandidateZone {
  zone: string;
  country?: string;
  /** The platform's regions in this zone. */
  regions: RegExp;
}

/** The candidate zones, with the country whose holidays their users have. */
const ZONES: readonly CandidateZone[] = [
  { zone: 'Europe/Berlin', country: 'DE', regions: /eu-central|gwc|germany/ },
  { zone: 'Europe/London', country: 'GB', regions: /eu-west|uk/ },
  { zone: 'Europe/Helsinki', country: 'FI', regions: /eu-north/ },
  { zone: 'America/New_York', country: 'US', regions: /us-east|eastus/ },
  { zone: 'America/Chicago', country: 'US', regions: /us-central|centralus/ },
  { zone: 'America/Denver', country: 'US', regions: /^$/ },
  { zone: 'America/Los_Angeles', country: 'US', regions: /us-west|westus/ },
  { zone: 'America/Sao_Paulo', country: 'BR', regions: /sa-east/ },
  { zone: 'Asia/Kolkata', country: 'IN', regions: /ap-south-/ },
  { zone: 'Asia/Singapore', country: 'SG', regions: /ap-southeast-1/ },
  { zone: 'Asia/Tokyo', country: 'JP', regions: /ap-northeast/ },
  { zone: 'Australia/Sydney', country: 'AU', regions: /ap-southeast-2/ },
  { zone: 'UTC', regions: /^$/ },
];
/** The hour in the middle of a working day. */
const MIDDAY = 13;

export interface UseWindow {
  /** ISO weekdays, 1 is Monday; ascending. */
  days: number[];
  /** Minutes of the local day. The end may be on the next day: then it is above 1440. */
  startMinute: number;
  endMinute: number;
}

export interface UsePattern {
  zone: string;
  windows: UseWindow[];
  /** The country on whose public holidays the compute is not used. */
  holidayCountry?: string;
}

/** Looks up the public holidays of a country in the years of a span, as days since 1970-01-01; undefined if unknown. */
export type HolidaysOf = (country: string, span: Span) => readonly number[] | undefined;

interface PatternOptions extends Span {
  /** The spans in which clients used the compute. */
  usedIntervals: readonly Span[];
  regionId: string;
  holidaysOf?: HolidaysOf | undefined;
}

/** Finds the weekly pattern of use; undefined if there is no clear one. */
export function usePattern(options: PatternOptions): UsePattern | undefined {
  const used = slotsOf(options);
  const { profile: fullProfile, ...bestZone } = findBestZone(used, options.regionId);
  const holidays = unusedHolidays(bestZone, used, { profile: fullProfile, holidaysOf: options.holidaysOf });
  const profile = holidays ? profileIn(bestZone.zone, used, holidays) : fullProfile;
  const windows = windowsIn(profile);
  if (windows.length === 0 || shareOf(windows) > MAX_WEEK_SHARE) return undefined;
  const { zone, country } = bestZone;
  return { zone, windows, ...(holidays && country !== undefined && { holidayCountry: country }) };
}

/**
 * The zone in which the weekly pattern is sharpest. Zones that change their clocks on the same days are equally sharp: among them, the region of
 * the compute decides, then the most plausible working day.
 */
function findBestZone(used: Slots, regionId: string): CandidateZone & { profile: number[] } {
  const candidates = ZONES.map((zone) => {
    const profile = profileIn(zone.zone, used);
    return { ...zone, profile, sharpness: sharpnessOf(profile), isOfRegion: Number(zone.regions.test(regionId)) };
  });
  const sharpest = Math.max(...candidates.map(({ sharpness }) => sharpness));
  const [best = { zone: 'UTC', regions: /^$/, profile: [] }] = candidates
    .filter(({ sharpness }) => sharpness >= EQUALLY_SHARP * sharpest)
    .map((one) => ({ ...one, distance: Math.abs(middayOf(one.profile) - MIDDAY) }))
    .sort((a, b) => b.isOfRegion - a.isOfRegion || a.distance - b.distance);
  return best;
}

/** Half hours from `first` on, numbered since the epoch: 1 if used. */
interface Slots {
  first: number;
  used: Uint8Array;
}

function slotsOf({ usedIntervals, fromMs, toMs }: PatternOptions): Slots {
  const first = Math.ceil(fromMs / SLOT_MS);
  const used = new Uint8Array(Math.max(0, Math.floor(toMs / SLOT_MS) - first));
  for (const use of usedIntervals) {
    for (let slot = Math.floor(use.fromMs / SLOT_MS); slot * SLOT_MS < use.toMs; slot += 1) used[slot - first] = 1;
  }
  return { first, used };
}

/** For each half hour of the local week, from Monday 00:00, the share of weeks in which it was used. Excluded local days don't count. */
function profileIn(zone: string, { first, used }: Slots, excludedDays?: ReadonlySet<number>): number[] {
  const usedWeeks = new Float64Array(SLOTS_PER_WEEK);
  const weeks = new Float64Array(SLOTS_PER_WEEK);
  const end = first + used.length;
  for (let slot = first, to = first; slot < end; slot = to) {
    const { offsetMs, toMs } = constantOffsetAround(zone, slot * SLOT_MS);
    to = Math.min(end, Math.ceil(toMs / SLOT_MS));
    // The offsets of all candidate zones are whole half hours.
    const ahead = offsetMs / SLOT_MS;
    for (let local = slot + ahead; local < to + ahead; local += 1) {
      if (excludedDays?.has(Math.floor(local / SLOTS_PER_DAY))) continue;
      const slotOfWeek = (local + EPOCH_SLOT) % SLOTS_PER_WEEK;
      weeks[slotOfWeek] = (weeks[slotOfWeek] ?? 0) + 1;
      usedWeeks[slotOfWeek] = (usedWeeks[slotOfWeek] ?? 0) + (used[local - ahead - first] ?? 0);
    }
  }
  return Array.from(usedWeeks, (count, slot) => count / Math.max(1, weeks[slot] ?? 0));
}

/** The sum of the squared distances of shares from one half. In a wrong zone, clock changes blur the edges of windows and lower it. */
function sharpnessOf(profile: readonly number[]): number {
  return sum(profile.map((share) => (share - 0.5) ** 2));
}

/** The angle of each half hour of a day on a clock of 24 hours. */
const ANGLES = Array.from({ length: SLOTS_PER_DAY }, (_, slot) => (2 * Math.PI * (slot + 0.5)) / SLOTS_PER_DAY);

/** The circular mean hour of use, 0 to 24. */
function middayOf(profile: readonly number[]): number {
  let [x, y] = [0, 0];
  for (const [slotOfDay, angle] of ANGLES.entries()) {
    let share = 0;
    for (let slot = slotOfDay; slot < profile.length; slot += SLOTS_PER_DAY) share += profile[slot] ?? 0;
    x += share * Math.cos(angle);
    y += share * Math.sin(angle);
  }
  return ((Math.atan2(y, x) / (2 * Math.PI)) * 24 + 24) % 24;
}

/** Turns runs of used half hours into windows. Runs on several days that differ by at most an hour become one window. */
function windowsIn(profile: readonly number[]): UseWindow[] {
  const windows: UseWindow[] = [];
  for (const { start, length } of runsIn(profile.map((share) => share >= USED_SHARE))) {
    const day = Math.floor(start / SLOTS_PER_DAY) + 1;
    const startMinute = 30 * (start % SLOTS_PER_DAY);
    const endMinute = startMinute + 30 * length;
    const isNear = (window: UseWindow) =>
      Math.abs(window.startMinute - startMinute) <= SAME_MINUTES &&
      Math.abs(window.endMinute - endMinute) <= SAME_MINUTES;
    const same = windows.find((window) => isNear(window) && !window.days.includes(day));
    if (same) {
      same.days.push(day);
      same.startMinute = Math.min(same.startMinute, startMinute);
      same.endMinute = Math.max(same.endMinute, endMinute);
    } else windows.push({ days: [day], startMinute, endMinute });
  }
  return windows
    .filter((window) => minutesOf(window) >= MIN_WEEK_MINUTES)
    .sort((a, b) => minutesOf(b) - minutesOf(a))
    .slice(0, MAX_WINDOWS)
    .map((window) => ({ ...window, days: window.days.toSorted((a, b) => a - b) }));
}

/** Runs of used half hours around the week, including short pauses; at least an hour and a half and less than a day long. */
function runsIn(used: readonly boolean[]): { start: number; length: number }[] {
  const isUsed = (slot: number) => used[(slot + SLOTS_PER_WEEK) % SLOTS_PER_WEEK] ?? false;
  const distances = Array.from({ length: LONGEST_PAUSE_SLOTS }, (_, index) => index + 1);
  const starts = [...used.keys()].filter((slot) => isUsed(slot) && !distances.some((back) => isUsed(slot - back)));
  const lengthFrom = (slot: number) => {
    let length = 1;
    while (length < SLOTS_PER_WEEK) {
      const next = distances.find((ahead) => isUsed(slot + length - 1 + ahead));
      if (next === undefined) break;
      length += next;
    }
    return length;
  };
  const runs = starts.map((start) => ({ start, length: lengthFrom(start) }));
  return runs.filter(({ length }) => length >= MIN_WINDOW_SLOTS && length < SLOTS_PER_DAY);
}

function shareOf(windows: readonly UseWindow[]): number {
  return sum(windows.map(minutesOf)) / (30 * SLOTS_PER_WEEK);
}

/** The length of the window in minutes per week. */
function minutesOf({ days, startMinute, endMinute }: UseWindow): number {
  return days.length * (endMinute - startMinute);
}

/** The country's public holidays, if the data show no use on most of those that fall on usually used weekdays; otherwise undefined. */
function unusedHolidays(
  { zone, country }: CandidateZone,
  { first, used }: Slots,
  { profile, holidaysOf }: { profile: readonly number[]; holidaysOf: HolidaysOf | undefined },
): Set<number> | undefined {
  const span = { fromMs: first * SLOT_MS, toMs: (first + used.length) * SLOT_MS };
  const usualSlots = (day: number) => {
    const from = (weekdayOf(day) - 1) * SLOTS_PER_DAY;
    return sum(profile.slice(from, from + SLOTS_PER_DAY));
  };
  const startOf = (day: number) => Math.max(0, instantOfMinute(zone, day, 0) / SLOT_MS - first);
  const usedSlots = (day: number) =>
    used.subarray(startOf(day), startOf(day + 1)).reduce((total, one) => total + one, 0);
  const [firstDay, lastDay] = [localDayAt(zone, span.fromMs), localDayAt(zone, span.toMs - 1)];
  const days = Array.from({ length: lastDay - firstDay + 1 }, (_, index) => firstDay + index);
  const usualDays = days.filter((day) => usualSlots(day) >= MIN_USUAL_SLOTS);
  const unusedDays = new Set(usualDays.filter((day) => usedSlots(day) <= MAX_HOLIDAY_USE * usualSlots(day)));
  // Looked up last, since the library takes long to load.
  const publicDays = country === undefined || unusedDays.size === 0 ? undefined : holidaysOf?.(country, span);
  const holidays = usualDays.filter((day) => publicDays?.includes(day));
  const unused = holidays.filter((day) => unusedDays.has(day));
  return holidays.length > 0 && unused.length >= UNUSED_HOLIDAYS * holidays.length ? new Set(publicDays) : undefined;
}
