import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { ScheduleWindow } from '../../domain/policy/schedule-window.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { earliest } from '../../domain/time/windows/opening.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';
import { FIELDS, type Field, proposedValue } from './schedules.ts';

/** No more pairs of a policy are reported: one change usually fixes all. */
const MAX_REMARKS_PER_POLICY = 3;

/** Two windows of one schedule, both recurring or both absolute, that are open together and want different values of a field. */
export const overlappingWindows: LintRule = function* (context) {
  for (const policy of context.schedules) {
    let found = 0;
    for (const remark of overlapsOf(policy, context)) {
      yield remark;
      found += 1;
      if (found >= MAX_REMARKS_PER_POLICY) break;
    }
  }
};

function* overlapsOf(policy: SchedulePolicy, context: LintContext): Iterable<Remark> {
  for (const later of policy.windows.entries()) {
    for (const earlier of policy.windows.slice(0, later[0]).entries()) {
      for (const field of FIELDS) {
        const remark = remarkOn(policy, later, earlier, field, context);
        if (remark) yield remark;
      }
    }
  }
}

type IndexedWindow = readonly [number, ScheduleWindow];

function remarkOn(
  policy: SchedulePolicy,
  [later, window]: IndexedWindow,
  [earlier, other]: IndexedWindow,
  field: Field,
  context: LintContext,
): Remark | undefined {
  const [value, otherValue] = [proposedValue(window, field), proposedValue(other, field)];
  if (value === undefined || otherValue === undefined || value === otherValue) return undefined;
  const atMs = firstOverlap(window.at, other.at, context);
  if (atMs === undefined) return undefined;
  const when = atMs === context.nowMs ? 'now' : `first at ${isoInstant(atMs)}`;
  const message = [
    `${field} ${value}, and window ${earlier + 1} of the same policy wants ${otherValue}: both are open ${when}`,
    ', and the later one, this one, wins; let them not overlap',
  ].join('');
  return { code: 'overlapping-windows', policy, at: ['windows', later, field], message };
}

/** The first instant at which both are open. Recurring and absolute times are compared separately, as absolute ones take precedence. */
function firstOverlap(a: readonly TimeSpec[], b: readonly TimeSpec[], context: LintContext): number | undefined {
  if (context.weekSpans.areDisjoint(a, b)) return undefined;
  const isAbsolute = ({ kind }: TimeSpec) => kind === 'interval';
  const isRecurring = (spec: TimeSpec) => !isAbsolute(spec);
  return earliest([isAbsolute, isRecurring], (isKind) =>
    firstOverlapOfKind(a.filter(isKind), b.filter(isKind), context),
  );
}

function firstOverlapOfKind(a: readonly TimeSpec[], b: readonly TimeSpec[], { openings, nowMs, endMs }: LintContext) {
  if (a.length === 0 || b.length === 0) return undefined;
  const [one, other] = [openings.of(a), openings.of(b)];
  let atMs: number | undefined = nowMs;
  while (atMs !== undefined && atMs < endMs) {
    const isOneOpen = one.isOpenAt(atMs);
    if (isOneOpen && other.isOpenAt(atMs)) return atMs;
    atMs = (isOneOpen ? other : one).nextStartAfter(atMs);
  }
  return undefined;
}
