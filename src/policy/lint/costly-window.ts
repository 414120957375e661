import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { CronSwitch, TimeSpec } from '../../domain/time/time-spec.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import { firingAfter } from '../../domain/time/windows/cron-firings.ts';
import { firingsOfDay } from '../../domain/time/windows/cron-times.ts';
import { isOpenAt, mayChangeAfter, openSince } from '../../domain/time/windows.ts';
import { type LintContext, type LintRule, type Remark, timesOf } from './rule.ts';

/** An opening and a closing every five minutes. */
const MAX_CHANGES_PER_DAY = 576;
/** Ends that are checked before a switch counts as never closing. */
const MAX_ENDS = 8;
/** Changes of a window that are checked. */
const MAX_CHANGES = 16;

/** A time that changes so often, or closes so rarely, that the search for its next boundary gives up. */
export const costlyWindow: LintRule = function* (context) {
  for (const policy of context.policies) {
    for (const { spec, at } of timesOf(policy, context)) {
      const message = whyCostly(spec, context);
      if (message !== undefined) yield { code: 'costly-window', policy, at, message } satisfies Remark;
    }
    const restart = asKind(policy, 'restart');
    if (restart && restart.everyMs === undefined && losesItsOpening(restart.at, context)) {
      const message =
        'the times follow each other so often that it is soon not known when they opened, and then no restart is due; write one time for all of them, or "every"';
      yield { code: 'costly-window', policy, at: ['at'], message } satisfies Remark;
    }
  }
};

function whyCostly(spec: TimeSpec, { nowMs }: LintContext): string | undefined {
  const changes = changesOfDay(spec);
  if (changes > MAX_CHANGES_PER_DAY) {
    return `changes up to ${changes} times a day, so boundaries are known only hours ahead; let it open less often, for longer`;
  }
  if (spec.kind !== 'cron-switch' || !isEveryEndUndone(spec, nowMs)) return undefined;
  return 'a start at the same time undoes each end, so it does not close; let it start and end at different times, or write "always"';
}

/** Without `every`, a restart is due once for each opening, so an opening whose start can't be found is lost. */
function losesItsOpening(at: readonly TimeSpec[], { nowMs }: LintContext): boolean {
  let ms = mayChangeAfter(at, nowMs);
  for (let checked = 0; ms !== undefined && checked < MAX_CHANGES; checked += 1) {
    if (openSince(at, ms - 1) === Number.NEGATIVE_INFINITY) return true;
    ms = mayChangeAfter(at, ms);
  }
  return false;
}

function changesOfDay(spec: TimeSpec): number {
  if (spec.kind === 'cron') {
    const { count, longestPauseMinutes } = firingsOfDay(spec.cron);
    // Openings without a pause between them are one opening.
    return longestPauseMinutes * MINUTE_MS <= spec.forMs ? 2 : 2 * count;
  }
  if (spec.kind !== 'cron-switch') return 0;
  return 2 * Math.min(firingsOfDay(spec.startCron).count, firingsOfDay(spec.endCron).count);
}

function isEveryEndUndone(spec: CronSwitch, nowMs: number): boolean {
  let end = firingAfter({ cron: spec.endCron, zone: spec.zone }, nowMs);
  for (let checked = 0; end && checked < MAX_ENDS; checked += 1) {
    if (!isOpenAt(spec, end.ms)) return false;
    end = firingAfter({ cron: spec.endCron, zone: spec.zone }, end.ms);
  }
  return end !== undefined;
}
