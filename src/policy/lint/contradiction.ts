import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { earliest, type OpeningsCache } from './openings.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { FIELDS, type Field, proposedValue } from './schedules.ts';

/** Of a policy with many contradictions, this many are named: one change mostly fixes all. */
const MOST_OF_ONE_POLICY = 3;

interface Schedule {
  policy: SchedulePolicy;
  speakers: Readonly<Record<Field, Speaker>>;
}

/**
 * Two schedules of the same priority whose open windows want different values for the same compute, with the first instant at
 * which they do. An absolute interval beats a recurring time, so these don't contradict each other; a policy that is only
 * observed may differ from one that is enforced.
 */
export const contradiction: LintRule = function* (context) {
  for (const group of groupsOf(context)) {
    for (const [index, later] of group.entries()) yield* contradictionsWith(later, group.slice(0, index), context);
  }
};

function* contradictionsWith(later: Schedule, before: readonly Schedule[], context: LintContext): Iterable<Remark> {
  let found = 0;
  for (const earlier of before) {
    // Most pairs concern different computes: that is cheaper to see than anything about their times.
    if (!context.overlap.mayMeet(later.policy, earlier.policy)) continue;
    for (const remark of contradictionsOf(later, earlier, context)) {
      yield remark;
      found += 1;
    }
    if (found >= MOST_OF_ONE_POLICY) return;
  }
}

function groupsOf({ schedules, openings }: LintContext): Iterable<Schedule[]> {
  const groups = new Map<string, Schedule[]>();
  for (const policy of schedules) {
    const size = createSpeaker(policy, 'size', openings);
    const schedule = { policy, speakers: { size, suspend_after: createSpeaker(policy, 'suspend_after', openings) } };
    const key = `${policy.mode} ${policy.priority}`;
    const group = groups.get(key);
    if (group) group.push(schedule);
    else groups.set(key, [schedule]);
  }
  return groups.values();
}

function* contradictionsOf(later: Schedule, earlier: Schedule, context: LintContext): Iterable<Remark> {
  const { overlap, nowMs } = context;
  for (const field of FIELDS) {
    const [one, other] = [later.speakers[field], earlier.speakers[field]];
    const found = mayContradict(one, other, context) ? firstContradiction(one, other, context) : undefined;
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

/** False if no two windows that want different values can be open together, whatever the dates: seen without looking at any. */
function mayContradict(later: Speaker, earlier: Speaker, { weekSpans }: LintContext): boolean {
  for (const voice of later.voices) {
    for (const other of earlier.voices) {
      if (voice.value !== other.value && !weekSpans.areDisjoint(voice.at, other.at)) return true;
    }
  }
  return false;
}

/** Steps from change to change of the two, skipping times at which one of them has no value. */
function firstContradiction(later: Speaker, earlier: Speaker, { nowMs, endMs }: LintContext) {
  let atMs: number | undefined = nowMs;
  while (atMs !== undefined && atMs < endMs) {
    const voice = later.effectiveAt(atMs);
    const answer = earlier.effectiveAt(atMs);
    if (voice && answer && voice.isAbsolute === answer.isAbsolute && voice.value !== answer.value) {
      return { atMs, later: voice, earlier: answer };
    }
    if (!voice) atMs = later.nextStartAfter(atMs);
    else if (answer) atMs = earliest([later.nextChangeAfter(atMs), earlier.nextChangeAfter(atMs)]);
    else atMs = earlier.nextStartAfter(atMs);
  }
  return undefined;
}

/** One window of a schedule that wants something of a field. */
interface Voice {
  /** Place of the window in its policy. */
  window: number;
  at: readonly TimeSpec[];
  value: string;
}

/** The values of one schedule's windows for one field, with several of them open or none. */
interface Speaker {
  voices: readonly Voice[];
  /** The window that decides at an instant. */
  effectiveAt(instantMs: number): (Voice & { isAbsolute: boolean }) | undefined;
  nextStartAfter(instantMs: number): number | undefined;
  nextChangeAfter(instantMs: number): number | undefined;
}

function createSpeaker(policy: SchedulePolicy, field: Field, openings: OpeningsCache): Speaker {
  const voices = policy.windows.flatMap((window, index): Voice[] => {
    const wanted = proposedValue(window, field);
    return wanted === undefined ? [] : [{ window: index, at: window.at, value: wanted }];
  });
  let found: ReturnType<typeof partsOf> | undefined;
  const parts = () => {
    found ??= partsOf(voices, openings);
    return found;
  };
  return {
    voices,
    effectiveAt: (instantMs) => parts().find((part) => part.openings.isOpenAt(instantMs)),
    nextStartAfter: (instantMs) => earliest(parts().map((part) => part.openings.nextStartAfter(instantMs))),
    nextChangeAfter: (instantMs) => earliest(parts().map((part) => part.openings.nextChangeAfter(instantMs))),
  };
}

/** The order of precedence of the windows of one policy: absolute intervals first, then the later window. */
function partsOf(voices: readonly Voice[], openings: OpeningsCache) {
  return voices
    .flatMap((voice) => {
      const absolute = voice.at.filter(({ kind }) => kind === 'interval');
      const recurring = voice.at.filter(({ kind }) => kind !== 'interval');
      return [
        { ...voice, isAbsolute: true, openings: openings.of(absolute) },
        { ...voice, isAbsolute: false, openings: openings.of(recurring) },
      ];
    })
    .sort((a, b) => Number(b.isAbsolute) - Number(a.isAbsolute) || b.window - a.window);
}
