/** Policies that take long to look through, as far as `ebb validate` accepts them, and copies of them that count what is done. */
import fc from 'fast-check';
import { stepsToEvaluateWindow } from '../../src/domain/decide/search-cost.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { Calendar, TimeSpec, Weekday } from '../../src/domain/time/time-spec.ts';
import { whyPolicyTooCostly, whySetTooCostly } from '../../src/policy/limits.ts';
import { aSchedule, aTrial } from '../support/builders.ts';
import { type Around, policySets, timeSpecs } from './arbitraries.ts';

const DAY_MS = 86_400_000;
const SMALL = { minCu: 1, maxCu: 2 };

/**
 * A copy of which nothing is known yet but its calendars, whose windows count how often they are asked, each as many steps as its
 * kind takes.
 */
export function counted<T>(drawn: T): { copy: T; steps: () => number } {
  let steps = 0;
  const wrap = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(wrap);
    if (typeof value !== 'object' || value === null) return value;
    if (!isTime(value)) return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, wrap(part)]));
    const { kind } = value;
    const get = () => {
      steps += stepsToEvaluateWindow(value);
      return kind;
    };
    return Object.defineProperty({ ...value }, 'kind', { enumerable: true, get });
  };
  return { copy: wrap(drawn) as T, steps: () => steps };
}

const KINDS = new Set(['always', 'interval', 'weekly', 'cron', 'cron-switch']);

function isTime(value: object): value is TimeSpec {
  return 'kind' in value && typeof value.kind === 'string' && KINDS.has(value.kind);
}

const crons = fc.constantFrom('* * * * *', '*/2 * * * *', '1-59/2 * * * *', '0 0 29 2 *', '0 0 * * 1', '*/7 2-3 * * *');
const weekday = fc.integer({ min: 1, max: 7 }).map((day) => day as Weekday);
const ZONES = ['Europe/Berlin', 'Australia/Lord_Howe', 'UTC'];

/** Times of every kind that take long, alone or up to a hundred, many with the same dates. */
export function costlyTimes({ fromMs }: Around): fc.Arbitrary<TimeSpec[]> {
  /** Days of a week for decades, a long holiday, or a few. */
  const calendar: fc.Arbitrary<Calendar> = fc
    .tuple(fc.constantFrom(1, 3, 2000, 20_000), fc.integer({ min: -400, max: 7 }), fc.constantFrom(1, 2, 7))
    .map(([count, first, step]) => ({
      name: 'days',
      days: Array.from({ length: count }, (_, index) => fromMs / DAY_MS + first + index * step),
    }));
  const dates = fc.record({ only: fc.tuple(calendar), except: fc.tuple(calendar) }, { requiredKeys: [] });
  const cron = fc.record({
    ...{ kind: fc.constant('cron' as const), cron: crons },
    forMs: fc.constantFrom(60_000, 3_600_000, 200_000_000),
  });
  const cronSwitch = fc.record({ kind: fc.constant('cron-switch' as const), startCron: crons, endCron: crons });
  const weekly = fc.record({
    ...{ kind: fc.constant('weekly' as const), days: fc.uniqueArray(weekday, { minLength: 1 }) },
    ...{ startMinute: fc.constantFrom(0, 150), endMinute: fc.constantFrom(149, 150, 1440) },
    endDayOffset: fc.integer({ min: 0, max: 7 }),
  });
  return fc
    .record({
      count: fc.constantFrom(1, 1, 2, 3, 8, 30, 60, 100, 600),
      time: fc.oneof(cron, cronSwitch, weekly),
      filter: fc.option(dates),
      zone: fc.constantFrom(...ZONES),
      takeTurns: fc.boolean(),
    })
    .map(({ count, time, filter, zone, takeTurns }) =>
      Array.from({ length: count }, (_, index): TimeSpec => {
        const turn = takeTurns && time.kind === 'cron' ? { cron: cronInTurn(time.cron, index) } : {};
        const inTurn = takeTurns && time.kind === 'weekly' ? (ZONES[index % ZONES.length] ?? zone) : zone;
        return { ...time, ...turn, zone: inTurn, ...(filter && { dates: filter }) };
      }),
    );
}

/** At another minute of the day each, on the same days. */
function cronInTurn(cron: string, index: number): string {
  const hour = index < 60 ? '*' : Math.floor(index / 60) % 24;
  return `${index % 60} ${hour} ${cron.split(' ').slice(2).join(' ')}`;
}

/** Sets of any policies, of costly ones, and of very many. */
export function costlySets(around: Around): fc.Arbitrary<Policy[]> {
  const schedule = fc
    .record({
      windows: fc.array(costlyTimes(around), { minLength: 1, maxLength: 3 }),
      priority: fc.integer({ min: -1, max: 1 }),
      leadMs: fc.option(fc.constant(600_000)),
    })
    .map(({ windows, priority, leadMs }) =>
      aSchedule({
        priority,
        windows: windows.map((at, index) => ({
          ...{ at, size: { minCu: 1 + (index % 2), maxCu: 2 } },
          ...(leadMs !== null && { readyLeadMs: leadMs }),
        })),
      }),
    );
  const many = fc
    .tuple(timeSpecs(around), fc.constantFrom(100, 1000), fc.option(fc.constantFrom(600_000, 86_400_000)))
    .map(([at, count, leadMs]) =>
      Array.from({ length: count }, (_, index) =>
        aSchedule({
          priority: leadMs === null ? index % 3 : 0,
          windows: [
            {
              ...{ at: at.map((time) => ({ ...time })), size: { minCu: 1 + (index % 2), maxCu: 2 } },
              ...(leadMs !== null && { readyLeadMs: leadMs }),
            },
          ],
        }),
      ),
    );
  const trials = fc
    .record({ count: fc.constantFrom(1, 20, 90), rotateDays: fc.constantFrom(7, 28), oneOf: fc.constantFrom(2, 10) })
    .map(({ count, rotateDays, oneOf }) => [
      aSchedule({
        windows: [{ at: [{ kind: 'cron', cron: '*/2 * * * *', forMs: 60_000, zone: 'UTC' }], size: SMALL }],
      }),
      ...Array.from({ length: count }, (_, index) => {
        const periods = Math.floor(1830 / rotateDays / oneOf) * oneOf;
        const fromDay = around.fromMs / DAY_MS - 30;
        return aTrial({
          ...{ of: ['p0'], priority: index % 2, mode: index % 3 === 0 ? 'observe' : 'enforce' },
          design: { seed: `${index}`, oneOf, rotateDays, fromDay, periods, zone: around.zone },
        });
      }),
    ]);
  return fc
    .oneof(
      { weight: 70, arbitrary: policySets(around) },
      { weight: 30, arbitrary: fc.array(schedule, { minLength: 1, maxLength: 6 }) },
      { weight: 1, arbitrary: many },
      { weight: 1, arbitrary: trials },
    )
    .map((policies) => thatValidate(policies.map((policy, index) => ({ ...policy, name: `p${index}` }))));
}

/** As many of them as `ebb validate` accepts. */
function thatValidate(policies: readonly Policy[]): Policy[] {
  const each = policies.filter((policy) => whyPolicyTooCostly(policy) === undefined);
  while (whySetTooCostly(each) !== undefined) each.length = Math.floor(each.length / 2);
  return each;
}
