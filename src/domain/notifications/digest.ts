import { DateTime } from 'luxon';
import { formatUsd } from '../compute/cost.ts';
import { type Range, savedRange, savingOrCost } from '../estimate.ts';
import type { Span } from '../time/span.ts';
import { DAY_MS, HOUR_MS, isoInstant } from '../time/units.ts';
import type { Notification } from './notification.ts';

/** Digests are sent this long after the end of the week (Monday 00:00 UTC), when its usage has arrived, in milliseconds. */
const SENT_AFTER_MS = 8 * HOUR_MS;

/** Digests are not sent later than this after they were due, in milliseconds: a store that has lost its data does not know which were sent. */
const MAX_LATENESS_MS = 2 * DAY_MS;

/** The facts about an owner's week. */
export interface WeekOfOwner {
  owner: string;
  /** The number of changes of sizes or timeouts. */
  changes: number;
  /** The number of restarts that changed nothing. */
  restarts: number;
  /** The number of computes that were changed or restarted. */
  computes: number;
  /** Absent if no usage is known. */
  cost?: {
    cuHours: number;
    /** US dollars; undefined if the price is unknown. */
    usd: number | undefined;
    /** Hours of projects without known usage; they are not in the sums. */
    unknownHours: number;
  };
  /** Projects with usage whose owner was not known yet; absent: none. They may be the owner's. */
  unreadProjects?: number;
  /** CU-hours that enforce mode would have saved in the last two weeks; absent if unknown. */
  wouldHaveSaved?: Range;
}

/** The week (from Monday 00:00 UTC) whose digest is due; undefined if it is too late to send its digest. */
export function digestWeek(nowMs: number): Span | undefined {
  const monday = DateTime.fromMillis(nowMs - SENT_AFTER_MS, { zone: 'utc' }).startOf('week');
  const toMs = monday.toMillis();
  if (nowMs > toMs + SENT_AFTER_MS + MAX_LATENESS_MS) return undefined;
  return { fromMs: monday.minus({ weeks: 1 }).toMillis(), toMs };
}

export function digestOf({ owner, ...week }: WeekOfOwner, { fromMs, toMs }: Span): Notification {
  const day = isoInstant(fromMs).slice(0, 10);
  return {
    id: `digest:${owner}:${day}`,
    kind: 'digest',
    atMs: toMs,
    owner,
    text: `week of ${day}, ${owner}: ${describeChanges(week)}; ${describeCost(week)}; ${describeSaved(week)}`,
  };
}

type WeekFacts = Omit<WeekOfOwner, 'owner'>;

function describeChanges({ changes, restarts, computes }: WeekFacts): string {
  if (changes + restarts === 0) return 'nothing was changed';
  // Changes restart computes, too, so these are not all restarts.
  const parts = [
    ...(changes > 0 ? [pluralize(changes, 'change')] : []),
    ...(restarts > 0 ? [`${pluralize(restarts, 'restart')} without a change`] : []),
  ];
  return `${parts.join(' and ')} of ${pluralize(computes, 'compute')}`;
}

function describeCost({ cost, unreadProjects: unread = 0 }: WeekFacts): string {
  const partial = unread > 0 ? `, without its part of ${pluralize(unread, 'project')} not read yet` : '';
  if (!cost) return `cost: unknown${partial}`;
  const { cuHours, usd, unknownHours } = cost;
  const price = usd === undefined ? 'price unknown' : formatUsd(usd);
  const missing = unknownHours > 0 ? `, without ${pluralize(Math.round(unknownHours), 'hour')} of unknown usage` : '';
  return `cost: ${cuHours.toFixed(1)} CU-hours (${price})${missing}${partial}`;
}

function describeSaved({ wouldHaveSaved: saved }: WeekFacts): string {
  if (!saved) return 'saved: unknown';
  const { isCost, low, high } = savingOrCost(saved);
  if (low < 0) return `enforcing in the last two weeks: ${savedRange(saved, (value) => value.toFixed(1), ' CU-hours')}`;
  const range = `${low.toFixed(1)} to ${high.toFixed(1)}`;
  return isCost
    ? `enforcing would have used ${range} CU-hours more in the last two weeks`
    : `enforcing would have saved ${range} CU-hours of the last two weeks`;
}

function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
