import { maySleep } from '../../domain/compute/compute-units.ts';
import type { FreezePolicy } from '../../domain/policy/kinds/freeze.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { ScheduleWindow } from '../../domain/policy/schedule-window.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { timeoutWith } from './schedules.ts';

/** Finds a freeze that starts while a window keeps computes awake: they stay awake, at their size, until the freeze ends. */
export const freezeKeepsAwake: LintRule = function* (context) {
  for (const policy of policiesOfKind(context.policies, 'freeze')) {
    for (const schedule of context.schedules.filter((candidate) => context.overlap.mayMeet(policy, candidate))) {
      const found = firstStartWithin(policy, schedule, context);
      if (!found) continue;
      const only = policy.allowRaise ? ', since it allows only raises' : '';
      const during = `window ${found.index + 1} of ${nameOf(context, schedule)} keeps computes awake`;
      const effect = `they stay awake until the freeze ends${only}; start it when the window is closed`;
      const message = `starts at ${isoInstant(found.atMs)}, while ${during}: ${effect}`;
      yield { code: 'freeze-keeps-awake', policy, at: ['at'], message } satisfies Remark;
      break;
    }
  }
};

/** The first start of a freeze during a window that never suspends and closes before the freeze ends. */
function firstStartWithin(policy: FreezePolicy, schedule: SchedulePolicy, { openings, nowMs, endMs }: LintContext) {
  const frozen = openings.of(policy.at);
  for (const [index, window] of schedule.windows.entries()) {
    if (!keepsAwake(schedule, window)) continue;
    const open = openings.of(window.at);
    for (let atMs = frozen.nextStartAfter(nowMs); atMs !== undefined; atMs = frozen.nextStartAfter(atMs)) {
      const frozenUntilMs = frozen.nextChangeAfter(atMs) ?? endMs;
      // A window that starts together with the freeze keeps nothing awake, as its values are not written.
      if (open.isOpenAt(atMs - 1) && (open.nextChangeAfter(atMs - 1) ?? endMs) < frozenUntilMs) return { atMs, index };
    }
  }
  return undefined;
}

/** True for a window that never suspends, if the compute may sleep after it. */
function keepsAwake(schedule: SchedulePolicy, window: ScheduleWindow): boolean {
  const timeout = timeoutWith(schedule, { values: window, at: [] });
  if (timeout === undefined || maySleep({ maxCu: 1, suspendTimeoutSeconds: timeout })) return false;
  if (typeof schedule.otherwise === 'string') return true;
  const after = schedule.otherwise.suspendTimeoutSeconds;
  return after === undefined || maySleep({ maxCu: 1, suspendTimeoutSeconds: after });
}
