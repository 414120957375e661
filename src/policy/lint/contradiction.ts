import { groupBy } from '../../domain/grouping.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { earliest } from '../../domain/time/windows/opening.ts';
import type { OpeningsCache } from './openings.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { FIELDS, type Field, proposedValue } from './schedules.ts';

/** Reported contradictions of one policy: one change usually fixes all. */
const MAX_OF_ONE_POLICY = 3;

interface Schedule {
  policy: SchedulePolicy;
  fields: Readonly<Record<Field, FieldWindows>>;
}

/**
 * Finds two schedules of the same mode and priority whose open windows want different values for the same compute. An absolute interval never
 * contradicts a recurring time, since it takes precedence.
 */
export const contradiction: LintRule = function* (context) {
  for (const group of groupsOf(context)) {
    for (const [index, later] of group.entries()) yield* contradictionsWith(later, group.slice(0, index), context);
  }
};

function* contradictionsWith(later: Schedule, before: readonly Schedule[], context: LintContext): Iterable<Remark> {
  let found = 0;
  for (const earlier of before) {
    // Most pairs select different computes, which is cheaper to find out than anything about their times.
    if (!context.overlap.mayMeet(later.policy, earlier.policy)) continue;
    for (const remark of contradictionsOf(later, earlier, context)) {
      yield remark;
      found += 1;
    }
    if (found >= MAX_OF_ONE_POLICY) return;
  }
}

function groupsOf({ schedules, openings }: LintContext): Iterable<Schedule[]> {
  const withFields = schedules.map((policy) => {
    const size = createFieldWindows(policy, 'size', openings);
    return { policy, fields: { size, suspend_after: createFieldWindows(policy, 'suspend_after', openings) } };
  });
  return groupBy(withFields, ({ policy }) => `${policy.mode} ${policy.priority}`).values();
}

function* contradictionsOf(later: Schedule, earlier: Schedule, context: LintContext): Iterable<Remark> {
  const { overlap, nowMs } = context;
  for (const field of FIELDS) {
    const windows = [later.fields[field], earlier.fields[field]] as const;
    const found = mayContradict(...windows, context) ? firstContradiction(...windows, context) : undefined;
    if (!found) continue;
    const compute = overlap.shared(later.policy, earlier.policy)?.computeId;
    const message = [
      `${field} ${found.later.value} contradicts ${found.earlier.value} of ${nameOf(context, earlier.policy)}`,
      compute === undefined ? '' : ` on ${compute}`,
      `, ${found.atMs === nowMs ? 'now' : `first at ${isoInstant(found.atMs)}`}: both windows are open, with the same priority`,
      '; the later policy, this one, wins; give one of them a higher priority',
    ].join('');
    yield { code: 'contradiction', policy: later.policy, at: ['windows', found.later.window, field], message };
  }
}

/** False if windows with different values are never open together. A cheap check that evaluates no openings. */
function mayContradict(later: FieldWindows, earlier: FieldWindows, { weekSpans }: LintContext): boolean {
  return later.values.some((one) =>
    earlier.values.some((other) => one.value !== other.value && !weekSpans.areDisjoint(one.at, other.at)),
  );
}

/** The first contradiction. Goes from change to change, skipping times at which one of the schedules has no value. */
function firstContradiction(later: FieldWindows, earlier: FieldWindows, { nowMs, endMs }: LintContext) {
  let atMs: number | undefined = nowMs;
  while (atMs !== undefined && atMs < endMs) {
    const ofLater = later.effectiveAt(atMs);
    const ofEarlier = earlier.effectiveAt(atMs);
    if (ofLater && ofEarlier && ofLater.isAbsolute === ofEarlier.isAbsolute && ofLater.value !== ofEarlier.value) {
      return { atMs, later: ofLater, earlier: ofEarlier };
    }
    if (!ofLater) atMs = later.nextStartAfter(atMs);
    else if (ofEarlier) atMs = earliest([later.nextChangeAfter(atMs), earlier.nextChangeAfter(atMs)], (ms) => ms);
    else atMs = earlier.nextStartAfter(atMs);
  }
  return undefined;
}

/** A window of a schedule with its value for a field. */
interface WindowValue {
  /** Index of the window in its policy. */
  window: number;
  at: readonly TimeSpec[];
  value: string;
}

/** The windows of one schedule that set a field. */
interface FieldWindows {
  values: readonly WindowValue[];
  /** The window that decides at an instant. */
  effectiveAt(instantMs: number): (WindowValue & { isAbsolute: boolean }) | undefined;
  nextStartAfter(instantMs: number): number | undefined;
  nextChangeAfter(instantMs: number): number | undefined;
}

function createFieldWindows(policy: SchedulePolicy, field: Field, openings: OpeningsCache): FieldWindows {
  const values = policy.windows.flatMap((window, index): WindowValue[] => {
    const wanted = proposedValue(window, field);
    return wanted === undefined ? [] : [{ window: index, at: window.at, value: wanted }];
  });
  let found: ReturnType<typeof partsOf> | undefined;
  const parts = () => {
    found ??= partsOf(values, openings);
    return found;
  };
  return {
    values,
    effectiveAt: (instantMs) => parts().find((part) => part.openings.isOpenAt(instantMs)),
    nextStartAfter: (instantMs) => earliest(parts(), (part) => part.openings.nextStartAfter(instantMs)),
    nextChangeAfter: (instantMs) => earliest(parts(), (part) => part.openings.nextChangeAfter(instantMs)),
  };
}

/** The parts in order of precedence: absolute intervals first, then later windows. */
function partsOf(values: readonly WindowValue[], openings: OpeningsCache) {
  return values
    .flatMap((value) => {
      const absolute = value.at.filter(({ kind }) => kind === 'interval');
      const recurring = value.at.filter(({ kind }) => kind !== 'interval');
      return [
        { ...value, isAbsolute: true, openings: openings.of(absolute) },
        { ...value, isAbsolute: false, openings: openings.of(recurring) },
      ];
    })
    .sort((a, b) => Number(b.isAbsolute) - Number(a.isAbsolute) || b.window - a.window);
}
