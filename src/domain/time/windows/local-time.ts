import { IANAZone } from 'luxon';
import { getOrAdd } from '../../grouping.ts';
import type { Weekday } from '../time-spec.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../units.ts';

/** Offsets are cached in blocks of this length. */
const BLOCK_MS = 400 * DAY_MS;
/** The interval of samples, in milliseconds. It finds all changes: no zone has ever changed its offset and back within it. */
const SAMPLE_EVERY_MS = 7 * DAY_MS;
/** The maximum number of cached blocks, over all zones. */
const MAX_BLOCKS_CACHED = 4096;

/** The offsets of one zone in one block: `offsetsMs[i]` holds from `sinceMs[i]` on. */
interface OffsetBlock {
  sinceMs: number[];
  offsetsMs: number[];
}

/** Cached blocks by zone and number: the runtime takes some 10 µs per offset, a block less than 0.1 µs. */
const knownBlocks = new Map<string, Map<number, OffsetBlock>>();
let blocksCached = 0;

/** The offset of local time in `zone` (a valid IANA name) from UTC at an instant, in milliseconds. */
export function offsetMsAt(zone: string, instantMs: number): number {
  const block = offsetBlock(zone, Math.floor(instantMs / BLOCK_MS));
  return block.offsetsMs[indexIn(block, instantMs)] ?? 0;
}

/** A span [fromMs, toMs) around an instant in which the zone's offset is constant; it ends with the block at the latest. */
export function constantOffsetAround(zone: string, instantMs: number) {
  const number = Math.floor(instantMs / BLOCK_MS);
  const block = offsetBlock(zone, number);
  const index = indexIn(block, instantMs);
  return {
    fromMs: block.sinceMs[index] ?? number * BLOCK_MS,
    toMs: block.sinceMs[index + 1] ?? (number + 1) * BLOCK_MS,
    offsetMs: block.offsetsMs[index] ?? 0,
  };
}

function indexIn({ sinceMs }: OffsetBlock, instantMs: number): number {
  let index = sinceMs.length - 1;
  while (index > 0 && (sinceMs[index] ?? 0) > instantMs) index -= 1;
  return index;
}

/** The first instant after `beforeMs` with a different offset. The search has no limit, so such an instant must exist. */
export function offsetChangeAfter(zone: string, beforeMs: number): number {
  const { offsetMs, toMs } = constantOffsetAround(zone, beforeMs);
  let changeMs = toMs;
  for (;;) {
    const next = constantOffsetAround(zone, changeMs);
    if (next.offsetMs !== offsetMs) return changeMs;
    changeMs = next.toMs;
  }
}

/** The last look-up, which is nearly always repeated. */
let lastLookup: { zone: string; block: number; offsets: OffsetBlock } | undefined;

function offsetBlock(zone: string, block: number): OffsetBlock {
  if (lastLookup?.zone === zone && lastLookup.block === block) return lastLookup.offsets;
  const offsets = knownBlocks.get(zone)?.get(block) ?? addBlock(zone, block);
  lastLookup = { zone, block, offsets };
  return offsets;
}

function addBlock(zone: string, block: number): OffsetBlock {
  if (blocksCached >= MAX_BLOCKS_CACHED) {
    knownBlocks.clear();
    blocksCached = 0;
  }
  const offsets = readBlock(IANAZone.create(zone), block * BLOCK_MS);
  getOrAdd(knownBlocks, zone, () => new Map<number, OffsetBlock>()).set(block, offsets);
  blocksCached += 1;
  return offsets;
}

function readBlock(zone: IANAZone, startMs: number): OffsetBlock {
  const lastMs = startMs + BLOCK_MS - 1;
  const sinceMs = [startMs];
  const offsetsMs = [zone.offset(startMs) * MINUTE_MS];
  for (let sampleMs = startMs; sampleMs < lastMs; sampleMs += SAMPLE_EVERY_MS) {
    const nextMs = Math.min(sampleMs + SAMPLE_EVERY_MS, lastMs);
    const offsetMs = zone.offset(nextMs) * MINUTE_MS;
    const beforeMs = offsetsMs.at(-1) ?? 0;
    if (offsetMs === beforeMs) continue;
    sinceMs.push(firstInstant(sampleMs, nextMs, (instantMs) => zone.offset(instantMs) * MINUTE_MS !== beforeMs));
    offsetsMs.push(offsetMs);
  }
  return { sinceMs, offsetsMs };
}

/** Bisects: `isAfter` is false at `lowMs`, true at `highMs`, and changes once in between. */
function firstInstant(lowMs: number, highMs: number, isAfter: (instantMs: number) => boolean): number {
  let [low, high] = [lowMs, highMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isAfter(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** More than any UTC offset, so that the offsets on both sides of a local time are found. */
const BRACKET_MS = 30 * HOUR_MS;

/** The local date in `zone` at an instant, as days since 1970-01-01. */
export function localDayAt(zone: string, instantMs: number): number {
  return Math.floor((instantMs + offsetMsAt(zone, instantMs)) / DAY_MS);
}

/** The weekday of a day counted from 1970-01-01, which was a Thursday. */
export function weekdayOf(localDay: number): Weekday {
  return (((((localDay + 3) % 7) + 7) % 7) + 1) as Weekday;
}

/** The instant of a local time: `minute` (0..1440) of the day counted from 1970-01-01. See {@link instantOfLocal}. */
export function instantOfMinute(zone: string, localDay: number, minute: number): number {
  return instantOfLocal(zone, localDay * DAY_MS + minute * MINUTE_MS);
}

/**
 * The instant of a local time, given as milliseconds since the epoch as if in UTC. A time that the clock skips becomes the first instant
 * after the gap; one that occurs twice becomes its first occurrence. In both cases it is the first instant at which the local clock
 * shows this time or a later one.
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
