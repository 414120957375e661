import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import { allowsDay } from '../../domain/time/windows/date-filter.ts';
import { weekdayOf } from '../../domain/time/windows/local-time.ts';
import { type LintContext, type LintRule, type Remark, timesOf } from './rule.ts';

/** Times that don't open within the horizon of lint. */
export const neverOpens: LintRule = function* (context) {
  for (const policy of context.policies) {
    for (const { spec, at } of timesOf(policy, context)) {
      const message = isSureToOpen(spec, context.nowMs) ? undefined : whyClosed(spec, context);
      if (message !== undefined) yield { code: 'never-opens', policy, at, message } satisfies Remark;
    }
  }
};

/** A weekly window surely opens if it has {@link ENOUGH_DAYS} opening days within this many days. */
const NEAR_DAYS = 60;
/** More than one, since a clock change may leave nothing of the window on one day. */
const ENOUGH_DAYS = 2;
/** A cron expression that names neither a day of the month nor a month. */
const EVERY_WEEK = /^\S+ \S+ \* \* \S+$/;

/** A cheap check that evaluates no openings. */
function isSureToOpen(spec: TimeSpec, nowMs: number): boolean {
  if (spec.kind === 'always') return true;
  if (spec.kind === 'cron') return spec.dates === undefined && EVERY_WEEK.test(spec.cron);
  if (spec.kind !== 'weekly') return false;
  let found = 0;
  // This day is in the future in every zone.
  const first = Math.floor(nowMs / DAY_MS) + 2;
  for (let day = first; day < first + NEAR_DAYS && found < ENOUGH_DAYS; day += 1) {
    if (spec.days.includes(weekdayOf(day)) && allowsDay(spec.dates, day)) found += 1;
  }
  return found >= ENOUGH_DAYS;
}

function whyClosed(spec: TimeSpec, { openings, nowMs, endMs }: LintContext): string | undefined {
  if (spec.kind === 'interval' && spec.endMs <= nowMs) return `ended at ${isoInstant(spec.endMs)}; remove it`;
  if (spec.kind === 'interval' && spec.startMs >= endMs) {
    return `does not open before ${isoInstant(spec.startMs)}, in more than two years`;
  }
  const { isOpenAt, nextStartAfter } = openings.of([spec]);
  if (isOpenAt(nowMs) || nextStartAfter(nowMs) !== undefined) return undefined;
  return 'never opens in the next two years; change its days or calendars, or remove it';
}
