import { DateTime } from 'luxon';
import { formatUsd } from '../compute/cost.ts';
import { isoInstant } from '../time/units.ts';
import type { Notification } from './notification.ts';

/** Digests are sent this long after the end of a week, when its usage has arrived: Monday 08:00 UTC. */
const SENT_AFTER_HOURS = 8;

/** From Monday 00:00 UTC to the next, milliseconds since the epoch. */
export interface Week {
  fromMs: number;
  toMs: number;
}

/** The facts about an owner's week. */
export interface WeekOfOwner {
  owner: string;
  /** Changes of sizes or timeouts, restarts, and computes that had any. */
  changes: number;
  restarts: number;
  computes: number;
  /** Undefined if no usage is known. */
  cost?: {
    cuHours: number;
    /** US dollars; undefined if the price is not known. */
    usd: number | undefined;
    /** Hours of projects that are in no sum. */
    unknownHours: number;
  };
  /** CU-hours that enforcing would have saved in the last two weeks; undefined if that is not known. */
  wouldHaveSaved?: { low: number; high: number };
}

/** The last week whose digest is due. */
export function digestWeek(nowMs: number): Week {
  const monday = DateTime.fromMillis(nowMs, { zone: 'utc' }).minus({ hours: SENT_AFTER_HOURS }).startOf('week');
  return { fromMs: monday.minus({ weeks: 1 }).toMillis(), toMs: monday.toMillis() };
}

/** The weekly digest of an owner: changes, costs and savings. */
export function digestOf({ owner, ...known }: WeekOfOwner, { fromMs, toMs }: Week): Notification {
  const day = isoInstant(fromMs).slice(0, 10);
  return {
    ...{ id: `digest:${owner}:${day}`, kind: 'digest', atMs: toMs, owner },
    text: `week of ${day}, ${owner}: ${describeChanges(known)}; ${describeCost(known)}; ${describeSaved(known)}`,
  };
}

type Known = Omit<WeekOfOwner, 'owner'>;

function describeChanges({ changes, restarts, computes }: Known): string {
  if (changes + restarts === 0) return 'nothing was changed';
  return `${counted(changes, 'change')} and ${counted(restarts, 'restart')} of ${counted(computes, 'compute')}`;
}

function describeCost({ cost }: Known): string {
  if (!cost) return 'cost: unknown';
  const { cuHours, usd, unknownHours } = cost;
  const price = usd === undefined ? 'price unknown' : formatUsd(usd);
  const missing =
    unknownHours > 0 ? `, without ${counted(Math.round(unknownHours), 'hour')} of which nothing is known` : '';
  return `cost: ${cuHours.toFixed(1)} CU-hours (${price})${missing}`;
}

function describeSaved({ wouldHaveSaved: saved }: Known): string {
  if (!saved) return 'saved: unknown';
  return `enforcing would have saved ${saved.low.toFixed(1)} to ${saved.high.toFixed(1)} CU-hours of the last two weeks`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
