/** Hours of the week in which a compute is used, in the zone of its users. */

import type { AwakeHistory } from '../awake/intervals.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import { localDayAt, offsetMsAt, weekdayOf } from '../time/windows/local-time.ts';
import type { UsageBucket } from '../usage/usage.ts';

const SLOT_MS = HOUR_MS / 2;
const SLOTS_A_DAY = DAY_MS / SLOT_MS;
const SLOTS_A_WEEK = 7 * SLOTS_A_DAY;

/** The least that is looked at. */
const LEAST_WINDOW_DAYS = 14;
/** A half hour belongs to a window if it is used in this share of the weeks. */
const USED_SHARE = 0.4;
/** Pauses up to two hours, as for lunch, stay in a window. */
const LONGEST_PAUSE_SLOTS = 4;
/** Windows must be used this often, and the rest this rarely, to be more than a coincidence. */
const LEAST_INSIDE = 0.6;
const MOST_OUTSIDE = 0.12;
/** Windows that cover more of the week save next to nothing. */
const MOST_OF_WEEK = 0.75;
/** This share of the public holidays in the data must be unused. */
const UNUSED_HOLIDAYS = 0.75;

interface Place {
  zone: string;
  country?: string;
  /** Regions of the platform that are in it. */
  regions: RegExp;
}

/** Zones that are tried, with the country whose holidays their users have. */
const ZONES: readonly Place[] = [
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
/** The middle of a working day, hours. */
const MIDDAY = 13;

/** Time in which clients were there: [fromMs, toMs). */
export interface Use {
  fromMs: number;
  toMs: number;
}

export interface UseWindow {
  /** As ISO counts them, 1 is Monday; ascending. */
  days: number[];
  /** Minutes of the local day; the end may be on the next day, up to 1440 more. */
  startMinute: number;
  endMinute: number;
}

export interface UsePattern {
  zone: string;
  windows: UseWindow[];
  /** The country whose public holidays are not used. */
  holidays?: string;
  /** The part of the week that is outside all windows. */
  outsideShare: number;
}

/** Public holidays of a country as days since 1970-01-01; undefined where they are not known. */
export type HolidaysOf = (country: string) => readonly number[] | undefined;

interface PatternOptions extends Use {
  uses: readonly Use[];
  regionId: string;
  holidaysOf?: HolidaysOf | undefined;
}

/** The hours of the week in which a compute is used, or undefined where there is no clear pattern. */
export function usePattern(options: PatternOptions): UsePattern | undefined {
  if (options.toMs - options.fromMs < LEAST_WINDOW_DAYS * DAY_MS) return undefined;
  const used = slotsOf(options);
  const { profile: found, ...place } = placeOf(used, options.regionId);
  const holidays = unusedHolidays(place, used, { profile: found, holidaysOf: options.holidaysOf });
  const profile = holidays ? profileIn(place.zone, used, (day) => !holidays.has(day)) : found;
  const windows = windowsIn(profile);
  if (windows.length === 0 || !isClear(profile, windows)) return undefined;
  const outsideShare = 1 - insideOf(windows).size / SLOTS_A_WEEK;
  const { zone, country } = place;
  return { zone, windows, outsideShare, ...(holidays && country !== undefined && { holidays: country }) };
}

/**
 * The zone in which the week looks sharpest. Zones whose clocks changed on the same days fit equally well: then the region of the compute
 * decides, else the zone with the most plausible working day.
 */
function placeOf(used: Slots, regionId: string): Place & { profile: number[] } {
  const tried = ZONES.map((place) => {
    const profile = profileIn(place.zone, used, () => true);
    return { ...place, profile, sharpness: sharpnessOf(profile), isOfRegion: Number(place.regions.test(regionId)) };
  });
  const sharpest = Math.max(...tried.map(({ sharpness }) => sharpness));
  const fitting = tried.filter(({ sharpness }) => sharpness >= 0.999 * sharpest);
  const distance = (profile: readonly number[]) => Math.abs(middayOf(profile) - MIDDAY);
  const sorted = fitting.toSorted((a, b) => b.isOfRegion - a.isOfRegion || distance(a.profile) - distance(b.profile));
  const [best = { zone: 'UTC', regions: /^$/, profile: [] }] = sorted;
  return best;
}

/** Half hours, by their number since the epoch, each used or not. */
interface Slots {
  first: number;
  used: Uint8Array;
}

function slotsOf({ uses, fromMs, toMs }: PatternOptions): Slots {
  const first = Math.ceil(fromMs / SLOT_MS);
  const used = new Uint8Array(Math.max(0, Math.floor(toMs / SLOT_MS) - first));
  for (const use of uses) {
    for (let slot = Math.floor(use.fromMs / SLOT_MS); slot * SLOT_MS < use.toMs; slot += 1) used[slot - first] = 1;
  }
  return { first, used };
}

/** For each half hour of the local week, in how many of the weeks it was used; 0 is Monday, 00:00. */
function profileIn(zone: string, { first, used }: Slots, isCounted: (localDay: number) => boolean): number[] {
  const hits = new Float64Array(SLOTS_A_WEEK);
  const seen = new Float64Array(SLOTS_A_WEEK);
  for (const [index, isUsed] of used.entries()) {
    const atMs = (first + index) * SLOT_MS;
    const day = localDayAt(zone, atMs);
    if (!isCounted(day)) continue;
    const ofDay = Math.floor((atMs + offsetMsAt(zone, atMs) - day * DAY_MS) / SLOT_MS);
    const slot = (weekdayOf(day) - 1) * SLOTS_A_DAY + ofDay;
    seen[slot] = (seen[slot] ?? 0) + 1;
    hits[slot] = (hits[slot] ?? 0) + isUsed;
  }
  return [...hits].map((count, slot) => count / Math.max(1, seen[slot] ?? 0));
}

/** The distance of half hours from being used every other week: in the wrong zone a change of the clocks blurs the edges. */
function sharpnessOf(profile: readonly number[]): number {
  return profile.reduce((sum, share) => sum + (share - 0.5) ** 2, 0);
}

/** The hour of the day around which the compute is used, between 0 and 24: the mean of a circle. */
function middayOf(profile: readonly number[]): number {
  let [x, y] = [0, 0];
  for (const [slot, share] of profile.entries()) {
    const angle = (2 * Math.PI * ((slot % SLOTS_A_DAY) + 0.5)) / SLOTS_A_DAY;
    x += share * Math.cos(angle);
    y += share * Math.sin(angle);
  }
  return ((Math.atan2(y, x) / (2 * Math.PI)) * 24 + 24) % 24;
}

/** Runs of half hours; those that are the same on several days, give or take half an hour, are one window. */
function windowsIn(profile: readonly number[]): UseWindow[] {
  const windows: UseWindow[] = [];
  for (const { start, length } of runsIn(profile.map((share) => share >= USED_SHARE))) {
    const day = Math.floor(start / SLOTS_A_DAY) + 1;
    const startMinute = 30 * (start % SLOTS_A_DAY);
    const endMinute = startMinute + 30 * length;
    const isNear = (one: UseWindow) =>
      Math.abs(one.startMinute - startMinute) <= 30 && Math.abs(one.endMinute - endMinute) <= 30;
    const same = windows.find((one) => isNear(one) && !one.days.includes(day));
    if (same) {
      same.days.push(day);
      same.startMinute = Math.min(same.startMinute, startMinute);
      same.endMinute = Math.max(same.endMinute, endMinute);
    } else windows.push({ days: [day], startMinute, endMinute });
  }
  return windows.map((one) => ({ ...one, days: one.days.toSorted((a, b) => a - b) }));
}

/** Runs of true around the week, with short pauses in them, at least an hour long and less than a day. */
function runsIn(used: readonly boolean[]): { start: number; length: number }[] {
  const isUsed = (slot: number) => used[(slot + SLOTS_A_WEEK) % SLOTS_A_WEEK] ?? false;
  const pause = Array.from({ length: LONGEST_PAUSE_SLOTS }, (_, index) => index + 1);
  const starts = [...used.keys()].filter((slot) => isUsed(slot) && !pause.some((back) => isUsed(slot - back)));
  const lengthFrom = (slot: number) => {
    let length = 1;
    for (let next: number | undefined = 1; next !== undefined && length < SLOTS_A_WEEK; ) {
      next = pause.find((ahead) => isUsed(slot + length - 1 + ahead));
      length += next ?? 0;
    }
    return length;
  };
  const runs = starts.map((start) => ({ start, length: lengthFrom(start) }));
  return runs.filter(({ length }) => length >= 2 && length < SLOTS_A_DAY);
}

function insideOf(windows: readonly UseWindow[]): Set<number> {
  const slots = windows.flatMap(({ days, startMinute, endMinute }) =>
    days.flatMap((day) =>
      Array.from({ length: (endMinute - startMinute) / 30 }, (_, index) => {
        return ((day - 1) * SLOTS_A_DAY + startMinute / 30 + index) % SLOTS_A_WEEK;
      }),
    ),
  );
  return new Set(slots);
}

function isClear(profile: readonly number[], windows: readonly UseWindow[]): boolean {
  const inside = insideOf(windows);
  if (inside.size > MOST_OF_WEEK * SLOTS_A_WEEK) return false;
  const mean = (isInside: boolean) => {
    const shares = profile.filter((_, slot) => inside.has(slot) === isInside);
    return shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length);
  };
  return mean(true) >= LEAST_INSIDE && mean(false) <= MOST_OUTSIDE;
}

/** The public holidays of the country, where most of those that are in the data on working days are unused. */
function unusedHolidays(
  { zone, country }: Place,
  { first, used }: Slots,
  { profile, holidaysOf }: { profile: readonly number[]; holidaysOf: HolidaysOf | undefined },
): Set<number> | undefined {
  const all = country === undefined ? undefined : holidaysOf?.(country);
  if (all === undefined) return undefined;
  const usedOn = new Map<number, number>();
  for (const [index, isUsed] of used.entries()) {
    const day = localDayAt(zone, (first + index) * SLOT_MS);
    usedOn.set(day, (usedOn.get(day) ?? 0) + isUsed);
  }
  const usual = (day: number) => {
    const from = (weekdayOf(day) - 1) * SLOTS_A_DAY;
    return profile.slice(from, from + SLOTS_A_DAY).reduce((sum, share) => sum + share, 0);
  };
  const holidays = all.filter((day) => usedOn.has(day) && usual(day) >= 4);
  const unused = holidays.filter((day) => (usedOn.get(day) ?? 0) <= 0.4 * usual(day));
  return holidays.length > 0 && unused.length >= UNUSED_HOLIDAYS * holidays.length ? new Set(all) : undefined;
}

/** The presence of clients by the awake log: up to one timeout before each suspend. */
export function usesByLog({ intervals }: AwakeHistory, timeoutSeconds: number): Use[] {
  return intervals.map(({ startMs, endMs, end }) => {
    const lastMs = end === 'timeout' ? Math.max(startMs + 1, endMs - 1000 * timeoutSeconds) : endMs;
    return { fromMs: startMs, toMs: lastMs };
  });
}

/**
 * The work of a compute by its usage: hours above the minimum. The first and last hour of a run count in part, by their usage relative to
 * the hour beside them.
 */
export function usesByUsage(hours: readonly UsageBucket[], minCu: number): Use[] {
  const excess = (hour: UsageBucket | undefined) =>
    Math.max(0, (hour?.cuSeconds ?? 0) - 1.03 * minCu * (hour?.seconds ?? 0));
  return hours.flatMap((hour, index): Use[] => {
    const own = excess(hour);
    if (own === 0 || hour.seconds * 1000 !== HOUR_MS) return [];
    const [before, after] = [excess(hours[index - 1]), excess(hours[index + 1])];
    const [fromMs, toMs] = [hour.startMs, hour.startMs + HOUR_MS];
    const lengthMs = HOUR_MS * Math.min(1, own / Math.max(before, after, own));
    if (before === 0 && after > 0) return [{ fromMs: toMs - lengthMs, toMs }];
    return after === 0 && before > 0 ? [{ fromMs, toMs: fromMs + lengthMs }] : [{ fromMs, toMs }];
  });
}
