import { IANAZone } from 'luxon';
import type { Weekday } from '../time-spec.ts';
import { DAY_MS, MINUTE_MS } from '../units.ts';

/** Offsets are looked up in blocks of time, each read once. */
const BLOCK_MS = 400 * DAY_MS;
/** Within this time, in milliseconds, one sample finds every change: no zone has ever left an offset and come back to it within one. */
const SAMPLE_EVERY_MS = 7 * DAY_MS;
/** The limit of the cache: zones times blocks. */
const MOST_BLOCKS_KEPT = 4096;

/** The offsets of one zone in one block: `offsetsMs[i]` holds from `sinceMs[i]` on. */
interface OffsetBlock {
  sinceMs: number[];
  offsetsMs: number[];
}

/** Asking the runtime for an offset takes some 10 µs, reading a block less than 0.1 µs. */
const knownBlocks = new Map<string, Map<number, OffsetBlock>>();
let blocksKept = 0;

/** The offset of local time in `zone` (a valid IANA name) from UTC at an instant, in milliseconds. */
export function offsetMsAt(zone: string, instantMs: number): number {
  const block = offsetBlock(zone, Math.floor(instantMs / BLOCK_MS));
  return block.offsetsMs[placeIn(block, instantMs)] ?? 0;
}

/** The time around an instant, [fromMs, toMs), in which no clock of the zone changes, within the searched range. */
export function constantOffsetAround(zone: string, instantMs: number) {
  const number = Math.floor(instantMs / BLOCK_MS);
  const block = offsetBlock(zone, number);
  const place = placeIn(block, instantMs);
  return {
    fromMs: block.sinceMs[place] ?? number * BLOCK_MS,
    toMs: block.sinceMs[place + 1] ?? (number + 1) * BLOCK_MS,
    offsetMs: block.offsetsMs[place] ?? 0,
  };
}

function placeIn({ sinceMs }: OffsetBlock, instantMs: number): number {
  let place = sinceMs.length - 1;
  while (place > 0 && (sinceMs[place] ?? 0) > instantMs) place -= 1;
  return place;
}

/** The first instant after `beforeMs` whose offset differs from that at `beforeMs`; there must be one soon. */
export function offsetChangeAfter(zone: string, beforeMs: number): number {
  const { offsetMs, toMs } = constantOffsetAround(zone, beforeMs);
  let changeMs = toMs;
  for (;;) {
    const next = constantOffsetAround(zone, changeMs);
    if (next.offsetMs !== offsetMs) return changeMs;
    changeMs = next.toMs;
  }
}

/** Nearly always the same is asked for again. */
let recent: { zone: string; block: number; offsets: OffsetBlock } | undefined;

function offsetBlock(zone: string, block: number): OffsetBlock {
  if (recent?.zone === zone && recent.block === block) return recent.offsets;
  const offsets = knownBlocks.get(zone)?.get(block) ?? addBlock(zone, block);
  recent = { zone, block, offsets };
  return offsets;
}

function addBlock(zone: string, block: number): OffsetBlock {
  if (blocksKept >= MOST_BLOCKS_KEPT) {
    knownBlocks.clear();
    blocksKept = 0;
  }
  const offsets = readBlock(IANAZone.create(zone), block * BLOCK_MS);
  const blocks = knownBlocks.get(zone) ?? new Map<number, OffsetBlock>();
  knownBlocks.set(zone, blocks.set(block, offsets));
  blocksKept += 1;
  return offsets;
}

function readBlock(zone: IANAZone, startMs: number): OffsetBlock {
  const lastMs = startMs + BLOCK_MS - 1;
  const sinceMs = [startMs];
  const offsetsMs = [zone.offset(startMs) * 60_000];
  for (let sampleMs = startMs; sampleMs < lastMs; sampleMs += SAMPLE_EVERY_MS) {
    const nextMs = Math.min(sampleMs + SAMPLE_EVERY_MS, lastMs);
    const offsetMs = zone.offset(nextMs) * 60_000;
    const beforeMs = offsetsMs.at(-1) ?? 0;
    if (offsetMs === beforeMs) continue;
    sinceMs.push(firstInstant(sampleMs, nextMs, (instantMs) => zone.offset(instantMs) * 60_000 !== beforeMs));
    offsetsMs.push(offsetMs);
  }
  return { sinceMs, offsetsMs };
}

/** Bisects: `isAfter` is false at `lowMs`, true at `highMs`, and changes once in between. */
function firstInstant(lowMs: number, highMs: number, isAfter: (instantMs: number) => boolean): number {
  let low = lowMs;
  let high = highMs;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isAfter(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** More than any zone is ahead of or behind UTC, so that both offsets around a local time are seen. */
const BRACKET_MS = 30 * 3_600_000;

/** Days since 1970-01-01 of the local date in `zone` at an instant. */
export function localDayAt(zone: string, instantMs: number): number {
  return Math.floor((instantMs + offsetMsAt(zone, instantMs)) / DAY_MS);
}

/** The day of the week of a day counted from 1970-01-01, which was a Thursday. */
export function weekdayOf(localDay: number): Weekday {
  return (((((localDay + 3) % 7) + 7) % 7) + 1) as Weekday;
}

/** The instant of a local time: `minute` (0..1440) of the day counted from 1970-01-01. See {@link instantOfLocal}. */
export function instantOfMinute(zone: string, localDay: number, minute: number): number {
  return instantOfLocal(zone, localDay * DAY_MS + minute * MINUTE_MS);
}

/**
 * The instant of a local time, given as the milliseconds since the epoch that it would be in UTC.
 * A time that the clock skips is the first instant after the gap; one that occurs twice is its first occurrence.
 * Both are one rule: the first instant at which the local clock shows this time or a later one.
 */
export function instantOfLocal(zone: string, localMs: number): number {
  const earlierOffsetMs = offsetMsAt(zone, localMs - BRACKET_MS);
  const laterOffsetMs = offsetMsAt(zone, localMs + BRACKET_MS);
  const byEarlierMs = localMs - earlierOffsetMs;
  if (earlierOffsetMs === laterOffsetMs || offsetMsAt(zone, byEarlierMs) === earlierOffsetMs) return byEarlierMs;
  const byLaterMs = localMs - laterOffsetMs;
  if (offsetMsAt(zone, byLaterMs) === laterOffsetMs) return byLaterMs;
  return offsetChangeAfter(zone, localMs - BRACKET_MS);
}
