/** A unit of a trial as it is measured: how it was assigned, what it used, and whether it counts. */
import type { Compute } from '../compute/compute.ts';
import { pureDraw, unitOf } from '../decide/control-group.ts';
import type { TrialTerms } from '../policy/directive.ts';
import type { TrialRecord } from '../records/compute-record.ts';
import { DAY_MS } from '../time/units.ts';
import { localDayAt } from '../time/windows/local-time.ts';
import { type LocalDay, localDays, moreKnown } from '../trial/local-days.ts';
import type { TrialUnit } from '../trial/savings.ts';
import type { UsageBucket } from '../usage/usage.ts';

/** The facts about a unit. */
export interface UnitFacts {
  /** One of its computes. */
  compute: Compute;
  /** The stored assignments of its computes. */
  stored: readonly TrialRecord[];
  /** Its usage, oldest first. */
  buckets: readonly UsageBucket[];
  /** Local days that were kept of the trial; what `buckets` know better wins. */
  days: ReadonlyMap<number, LocalDay>;
  owner: string;
  /** US dollars; undefined if the price is not known. */
  usdPerCuHour: number | undefined;
}

/** The unit with its local days, and why it is left out if it is. */
export function measuredUnit(terms: TrialTerms, facts: UnitFacts): TrialUnit {
  const { compute, stored, buckets, days, owner, usdPerCuHour } = facts;
  const { zone, fromDay } = terms.design;
  const [first, last] = [buckets[0], buckets.at(-1)];
  const begins = first ? Math.min(fromDay, localDayAt(zone, first.startMs)) : fromDay;
  const ends = last ? localDayAt(zone, last.startMs + last.seconds * 1000 - 1) + 1 : fromDay;
  return {
    unit: unitOf(terms, compute),
    owner,
    draw: stored[0] ?? pureDraw(terms, compute),
    leftOut: whyLeftOut(terms, facts),
    usdPerCuHour,
    usage: moreKnown(days, localDays(buckets, { zone, fromDay: begins, untilDay: ends })),
  };
}

function whyLeftOut({ digest, unit, design }: TrialTerms, { stored, buckets }: UnitFacts): string | undefined {
  if (stored.some(({ baseline }) => baseline === null)) return 'what it had before the trial is not known';
  if (stored.some(({ terms }) => terms !== digest)) return 'it was assigned under other terms';
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (!first || !last) return 'its usage is not known';
  const livedMs = last.startMs + last.seconds * 1000 - first.startMs;
  const rotationMs = design.oneOf * design.rotateDays * DAY_MS;
  return unit === 'branch' && livedMs < rotationMs ? 'it did not live through a whole rotation' : undefined;
}
