/** Whole policy sets and situations at random, as the parser could have made them: checked, sizes and zones valid. */

import fc from 'fast-check';
import type { Compute, ComputeSettings, Size } from '../../src/domain/compute/compute.ts';
import {
  COMPUTE_SIZES_CU,
  MAX_AUTOSCALING_CU,
  MAX_AUTOSCALING_SPAN_CU,
} from '../../src/domain/compute/compute-units.ts';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import type { ConnectionHistory } from '../../src/domain/connections/connections.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { ManualChanges, PartialDisruption } from '../../src/domain/policy/disruption.ts';
import type { BudgetPolicy } from '../../src/domain/policy/kinds/budget.ts';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { GuardPolicy } from '../../src/domain/policy/kinds/guard.ts';
import type { HeadroomPolicy } from '../../src/domain/policy/kinds/headroom.ts';
import type { PolicyKind, PolicyOf } from '../../src/domain/policy/kinds/kinds.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import type { RestartPolicy } from '../../src/domain/policy/kinds/restart.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { TrialPolicy } from '../../src/domain/policy/kinds/trial.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { ScheduleWindow } from '../../src/domain/policy/schedule-window.ts';
import type { StepSpan } from '../../src/domain/spend/terms.ts';
import type { TimeSpec, Weekday } from '../../src/domain/time/time-spec.ts';
import { aCompute } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const some = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** A record of which absent keys are absent. */
function partial<T extends object>(model: { [K in keyof T]-?: fc.Arbitrary<T[K]> }, required: (keyof T)[]) {
  return fc.record(model, { requiredKeys: required }) as unknown as fc.Arbitrary<T>;
}

export interface Around {
  zone: string;
  /** A midnight in UTC. */
  fromMs: number;
  days: number;
  /** Recurring windows on dates of these days only: after them nothing changes any more, which is soon found. */
  once?: boolean;
}

const weekday = fc.integer({ min: 1, max: 7 }).map((day) => day as Weekday);
const minute = fc.oneof(
  some(0, 30, 60, 90, 105, 120, 135, 150, 180, 1380, 1410, 1440),
  fc.integer({ min: 0, max: 1440 }),
);

const cron = fc
  .tuple(
    some('0', '30', '15,45', '10', '*/20', '0', '59'),
    some('*', '*/2', '*/6', '0', '1', '2', '2,3', '0-4', '8-18', '22-23', '23'),
    some('*', '*', '*', '1-5', '0,6', '2-4'),
  )
  .map(([minutes, hours, days]) => `${minutes} ${hours} * * ${days}`);

/** Windows that change often or whose ends are undone: what a search must not follow one by one. */
const dense = fc.oneof(
  some(
    ['0 0 * * *', '0 0 * * 0'],
    ['* * * * *', '0 * * * *'],
    ['* * * * *', '* * * * 1'],
    ['0 0 29 2 *', '0 0 * * *'],
  ).map(([startCron, endCron]) => ({ kind: 'cron-switch' as const, startCron, endCron })),
  some('*/2 * * * *', '1-59/2 * * * *', '* * * * *').map((expression) => ({
    ...{ kind: 'cron' as const, cron: expression },
    forMs: MINUTE_MS,
  })),
);

/** Windows of every form in a zone, or in UTC, around `days` days from `fromMs`, a midnight in UTC, on. */
export function timeSpecs({ zone, fromMs, days, once = false }: Around): fc.Arbitrary<TimeSpec[]> {
  // Otherwise calendars would name fractions of a day, which no search of a window ever meets: it would not end.
  if (fromMs % DAY_MS !== 0) throw new Error(`${new Date(fromMs).toISOString()} is not a midnight in UTC`);
  const weekly = fc.record({
    kind: fc.constant('weekly' as const),
    days: fc.uniqueArray(weekday, { minLength: 1 }),
    startMinute: minute.map((value) => value % 1440),
    endMinute: minute,
    endDayOffset: fc.oneof(some(0, 1), fc.integer({ min: 0, max: 7 })),
    zone: some(zone, 'UTC'),
  });
  const instant = fc.integer({ min: 0, max: days * 1440 }).map((offset) => fromMs + offset * MINUTE_MS);
  const interval = fc
    .tuple(instant, instant)
    .map(([a, b]) => ({ kind: 'interval' as const, startMs: Math.min(a, b), endMs: Math.max(a, b) }));
  const calendar = fc
    .uniqueArray(fc.integer({ min: -1, max: days + 1 }), { maxLength: 4 })
    .map((list) => ({ name: 'days', days: list.sort((a, b) => a - b).map((day) => fromMs / DAY_MS + day) }));
  const dates = fc.record(
    { only: fc.tuple(calendar), except: fc.tuple(calendar) },
    { requiredKeys: once ? ['only'] : [] },
  );
  const filtered = <T extends object>(arbitrary: fc.Arbitrary<T>) =>
    fc
      .tuple(arbitrary, once ? dates : fc.option(dates))
      .map(([spec, filter]) => (filter ? { ...spec, dates: filter } : spec));
  const cronWindow = fc.record({
    kind: fc.constant('cron' as const),
    cron,
    forMs: fc.integer({ min: 1, max: 3 * 1440 }).map((minutes) => minutes * MINUTE_MS),
    zone: fc.constant(zone),
  });
  const cronSwitch = fc.record({
    kind: fc.constant('cron-switch' as const),
    startCron: cron,
    endCron: cron,
    zone: fc.constant(zone),
  });
  const spec = fc.oneof(
    { weight: 5, arbitrary: filtered(weekly) },
    { weight: 2, arbitrary: filtered(cronWindow) },
    { weight: 2, arbitrary: filtered(cronSwitch) },
    { weight: 1, arbitrary: interval },
    { weight: 1, arbitrary: filtered(dense.map((one) => ({ ...one, zone }) as TimeSpec)) },
  );
  return fc.array(spec, { minLength: 1, maxLength: 3 });
}

const cu = fc.oneof(some(0.25, 0.5, 1, 2, 3, 4, 8, 9, 16), some(...COMPUTE_SIZES_CU));

/** Every size that the platform has. */
export const sizes: fc.Arbitrary<Size> = fc
  .tuple(cu, cu)
  .map(([a, b]) => ({ minCu: Math.min(a, b), maxCu: Math.max(a, b) }))
  .map(({ minCu, maxCu }) =>
    maxCu > MAX_AUTOSCALING_CU || maxCu - minCu > MAX_AUTOSCALING_SPAN_CU ? { minCu: maxCu, maxCu } : { minCu, maxCu },
  );

const timeouts = some(-1, 60, 300, 3600, 604_800);
const settings: fc.Arbitrary<ComputeSettings> = fc
  .tuple(sizes, timeouts)
  .map(([size, suspendTimeoutSeconds]) => ({ ...size, suspendTimeoutSeconds }));

const rule = partial<NonNullable<PartialDisruption['lower']>>(
  {
    when: some('any', 'idle', 'quiet'),
    deadlineMs: fc.integer({ min: 1, max: 300 }).map((minutes) => minutes * MINUTE_MS),
    atDeadline: some('apply', 'skip'),
  },
  ['when', 'atDeadline'],
);
const disruptions = partial<PartialDisruption>(
  {
    raise: rule,
    lower: rule,
    quietBelow: fc.nat({ max: 5 }),
    cooldownMs: fc.nat({ max: 60 }).map((minutes) => minutes * MINUTE_MS),
    atOnce: some(0.1, 1),
    atMost: some({ share: 0.3, windowMs: 10 * MINUTE_MS }),
    newlyDiscovered: some('wait', 'act'),
  },
  [],
);
const manualChanges: fc.Arbitrary<ManualChanges> = fc.oneof(
  some<ManualChanges>({ kind: 'respect' }, { kind: 'revert' }),
  fc.constant<ManualChanges>({ kind: 'respect-for', forMs: 2 * 3_600_000 }),
);

const base = (kind: string) => ({
  kind: fc.constant(kind as never),
  name: fc.constant(kind),
  file: fc.constant('f.yaml'),
  mode: some('enforce', 'enforce', 'enforce', 'observe') as fc.Arbitrary<'enforce' | 'observe'>,
  select: some(aSelector({ projects: ['*'] }), aSelector({ projects: ['*'] }), aSelector({ projects: ['x'] })),
  priority: fc.integer({ min: -2, max: 2 }),
  owner: fc.constant('team'),
  team: fc.constant(undefined),
  disruption: disruptions,
  manualChanges,
  notify: fc.constant(undefined),
  notifyBeforeMs: fc.constant(undefined),
});
const BASE_KEYS = ['kind', 'name', 'file', 'mode', 'select', 'priority'] as const;

export function schedules(around: Around): fc.Arbitrary<SchedulePolicy> {
  const values = fc.tuple(maybe(sizes), maybe(timeouts)).map(([size, suspendTimeoutSeconds]) => ({
    ...(size && { size }),
    ...(suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds }),
  }));
  const window = fc.tuple(timeSpecs(around), values, maybe(fc.integer({ min: 1, max: 30 }))).map(
    ([at, wanted, lead]): ScheduleWindow => ({
      at,
      ...wanted,
      ...(lead !== undefined && { readyLeadMs: lead * MINUTE_MS }),
    }),
  );
  return partial<SchedulePolicy>(
    {
      ...base('schedule'),
      windows: fc.array(window, { minLength: 1, maxLength: 2 }),
      otherwise: fc.oneof(some('leave' as const, 'baseline' as const), values),
    },
    [...BASE_KEYS, 'windows', 'otherwise'],
  );
}

/** Limits that all allow 2 CU and five minutes, unless they may conflict. */
function limits(mayConflict: boolean): fc.Arbitrary<LimitsPolicy> {
  const low = mayConflict ? cu : some(0.25, 0.5, 1, 2);
  const high = mayConflict ? cu : some(2, 4, 8, 56);
  const bounds = fc.tuple(maybe(low), maybe(high)).map(([a, b]) => ({
    ...(a !== undefined && { minCu: b === undefined ? a : Math.min(a, b) }),
    ...(b !== undefined && { maxCu: a === undefined ? b : Math.max(a, b) }),
  }));
  const timeoutBounds = some<NonNullable<LimitsPolicy['suspendTimeout']>>(
    { minSeconds: 60 },
    { maxSeconds: 300 },
    { minSeconds: 300, maxSeconds: -1 },
    ...(mayConflict ? [{ minSeconds: -1 }, { maxSeconds: 60 }] : []),
  );
  return partial<LimitsPolicy>({ ...base('limits'), size: bounds, suspendTimeout: timeoutBounds, hard: fc.boolean() }, [
    ...BASE_KEYS,
    'hard',
  ]);
}

const headroom = partial<HeadroomPolicy>(
  {
    ...base('headroom'),
    connections: some('counts', 'counts', 'others'),
    targetShare: some(0.5, 0.7, 1),
    criticalShare: some(0.8, 0.95),
    maxCu: cu,
    mayRaiseMin: fc.boolean(),
    scaleDownAfterMs: some(10 * MINUTE_MS, 30 * MINUTE_MS),
    act: some('apply', 'apply', 'advise'),
  },
  [...BASE_KEYS, 'connections', 'targetShare', 'maxCu', 'mayRaiseMin', 'scaleDownAfterMs', 'act'],
);

function restarts(around: Around): fc.Arbitrary<RestartPolicy> {
  const every = { everyMs: some(DAY_MS, 7 * DAY_MS), connectionsBelow: fc.nat({ max: 5 }) };
  return partial<RestartPolicy>({ ...base('restart'), at: timeSpecs(around), ...every }, [...BASE_KEYS, 'at']);
}

function freezes(around: Around): fc.Arbitrary<FreezePolicy> {
  return partial<FreezePolicy>({ ...base('freeze'), at: timeSpecs(around), allowRaise: fc.boolean() }, [
    ...BASE_KEYS,
    'at',
    'allowRaise',
  ]);
}

/** Periods of one or two days, so that units flip often; of policies that may be in the set or not. */
function trials({ zone, fromMs, days }: Around): fc.Arbitrary<TrialPolicy> {
  const names = Array.from({ length: 6 }, (_, index) => [`schedule-${index}`, `limits-${index}`]).flat();
  const fromDay = Math.floor(fromMs / DAY_MS);
  const design = fc
    .record({
      seed: fc.string({ maxLength: 3 }),
      oneOf: some(2, 3, 4),
      rotateDays: some(1, 2),
      fromDay: fc.integer({ min: fromDay - 2, max: fromDay + days }),
      rotations: some(1, 2),
    })
    .map(({ rotations, ...rest }) => ({ ...rest, periods: rotations * rest.oneOf, zone }));
  const of = fc.shuffledSubarray(names, { minLength: 1, maxLength: 8 });
  return partial<TrialPolicy>(
    {
      ...base('trial'),
      ...{ of, design, unit: some('project', 'branch'), digest: fc.constant('digest') },
      stopIf: fc.constant({ costUsd: 200 }),
    },
    [...BASE_KEYS, 'of', 'unit', 'design', 'digest'],
  );
}

/** Which of its steps limit is said by spans of the same names: see {@link stepSpans}. */
const budgets: fc.Arbitrary<BudgetPolicy> = partial<BudgetPolicy>(
  {
    ...base('budget'),
    month: fc.constant({ unit: 'cu_hours' as const, amount: 100 }),
    steps: fc.tuple(some(0.25, 1, 2, 8), some(60, 300, 3600)).map(([maxCu, seconds]) => [
      { at: 0.8, of: 'projected' as const, notify: ['team'] },
      { at: 0.9, of: 'projected' as const, notify: [], limits: { suspend_timeout: { low: 0, high: seconds } } },
      { at: 1, of: 'spent' as const, notify: [], limits: { size: { low: 0, high: maxCu } } },
    ]),
    includeProtected: fc.boolean(),
    zone: some('UTC', 'Europe/Berlin'),
  },
  [...BASE_KEYS, 'month', 'steps', 'includeProtected', 'zone'],
);

/** A guard proposes nothing, so its terms are all alike. */
const guards: fc.Arbitrary<GuardPolicy> = partial<GuardPolicy>(
  {
    ...base('guard'),
    ...{ source: fc.constant('main'), query: fc.constant('latency'), isAlert: fc.boolean() },
    match: fc.constant({ service: '{project_name}' }),
    badWhen: fc.constant({ side: 'above' as const, limit: 0.4, relative: false }),
    noData: some('unknown', 'healthy'),
    ...{ forMs: fc.constant(180_000), watchMs: fc.constant(1_800_000), settleMs: fc.constant(120_000) },
    ...{ remedy: some('notify', 'undo', 'undo_with_restart'), retryMs: some(7 * DAY_MS) },
  },
  [...BASE_KEYS, 'source', 'query', 'isAlert', 'match', 'badWhen', 'noData', 'forMs', 'watchMs', 'settleMs', 'remedy'],
);

/** Spans of the steps of generated budgets, around an instant. */
export function stepSpans({ fromMs, days }: Around): fc.Arbitrary<StepSpan[]> {
  const span = fc
    .tuple(fc.nat(5), some([0.9, 'projected'], [1, 'spent']), fc.nat(days * 24), fc.nat(48))
    .map(([index, [at, of], fromHour, hours]): StepSpan => {
      const startMs = fromMs + fromHour * 60 * MINUTE_MS;
      return {
        ...{ policy: `budget-${index}`, account: 'default', at: at as number, of: of as StepSpan['of'] },
        ...{ fromMs: startMs, untilMs: startMs + hours * 60 * MINUTE_MS },
      };
    });
  return fc.array(span, { maxLength: 4 });
}

/** Policies of every kind, each with a name of its own. */
export function policySets(around: Around, { mayConflict = true } = {}): fc.Arbitrary<Policy[]> {
  const kinds: { [K in PolicyKind]: { weight: number; arbitrary: fc.Arbitrary<PolicyOf<K>> } } = {
    schedule: { weight: 10, arbitrary: schedules(around) },
    limits: { weight: 4, arbitrary: limits(mayConflict) },
    headroom: { weight: 4, arbitrary: headroom },
    restart: { weight: 1, arbitrary: restarts(around) },
    freeze: { weight: 1, arbitrary: freezes(around) },
    trial: { weight: 2, arbitrary: trials(around) },
    budget: { weight: 2, arbitrary: budgets },
    guard: { weight: 1, arbitrary: guards },
  };
  const policy: fc.Arbitrary<Policy> = fc.oneof(...Object.values(kinds));
  return fc
    .array(policy, { minLength: 1, maxLength: 6 })
    .map((policies) => policies.map((one, index) => ({ ...one, name: `${one.kind}-${index}` })));
}

/** A compute of the builders' project with any valid settings, awake or asleep. */
export const computes: fc.Arbitrary<Compute> = fc
  .tuple(settings, some('active', 'active', 'idle'), maybe(fc.integer({ min: 0, max: 60 * 24 })))
  .map(([has, state, startedMinutesAgo]) =>
    aCompute({
      ...has,
      ...(has.maxCu > MAX_AUTOSCALING_CU && { suspendTimeoutSeconds: -1 }),
      state: state as Compute['state'],
      ...(startedMinutesAgo !== undefined && { startedAtMs: Date.UTC(2026, 0, 1) - startedMinutesAgo * MINUTE_MS }),
    }),
  );

/** What a compute had when it was first seen. */
export const baselines: fc.Arbitrary<ComputeSettings | undefined> = maybe(settings);

export const profiles = some(CONNECTION_PROFILES.specification, CONNECTION_PROFILES['vendor-2026']);

/** Counts of one source: now and then missing, stale, with gaps; undefined where nobody judges headroom. */
export function connectionHistories(nowMs: number): fc.Arbitrary<ConnectionHistory | undefined> {
  const sample = fc
    .tuple(fc.nat({ max: 40 }), fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 5000 })))
    .map(([minutesAgo, connections]) => ({ atMs: nowMs - minutesAgo * MINUTE_MS, connections }));
  const history = fc
    .uniqueArray(sample, { maxLength: 15, selector: ({ atMs }) => atMs })
    .map((samples) => new Map([['counts', samples.toSorted((a, b) => a.atMs - b.atMs)]]));
  return fc.option(history, { nil: undefined, freq: 6 });
}

/** Holds of the builders' compute around an instant. */
export function holdLists(nowMs: number): fc.Arbitrary<Hold[]> {
  const hold = fc
    .tuple(fc.integer({ min: -600, max: 60 }), fc.integer({ min: 1, max: 900 }), maybe(sizes), maybe(timeouts))
    .map(
      ([from, minutes, size, suspendTimeoutSeconds]): Hold => ({
        ...{ id: `h${from}`, projectId: 'p-one', computeId: 'ep-one', owner: 'ann', reason: 'test' },
        createdAtMs: nowMs + from * MINUTE_MS,
        expiresAtMs: nowMs + (from + minutes) * MINUTE_MS,
        ...(size && { size }),
        ...(suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds }),
      }),
    );
  return fc.array(hold, { maxLength: 2 });
}
