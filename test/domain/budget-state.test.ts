import { describe, expect, it } from 'vitest';
import {
  advanceBudget,
  type BudgetFacts,
  type BudgetState,
  releaseBudget,
  stepReached,
} from '../../src/domain/spend/state.ts';
import { type BudgetTerms, limitsText } from '../../src/domain/spend/terms.ts';
import { aBudget, at } from '../support/builders.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FROM = at('2026-03-01T00:00:00Z');
const TO = at('2026-04-01T00:00:00Z');

/** Every day used the same, up to two hours before; 100 CU-hours is the amount. */
function factsAt(nowMs: number, perDay: number, fields: Partial<BudgetFacts> = {}): BudgetFacts {
  const untilMs = nowMs - 2 * HOUR_MS;
  const todayMs = untilMs - (untilMs % DAY_MS);
  const days = new Map(Array.from({ length: 56 }, (_, ago) => [todayMs - (ago + 1) * DAY_MS, perDay]));
  const month = { fromMs: FROM, toMs: TO, untilMs };
  const spent = ((untilMs - FROM) / DAY_MS) * perDay;
  return { nowMs, month, spent, unknownHours: 0, unknown: 0, knownUntilMs: untilMs, days, ...fields };
}

const advance = (before: BudgetState | undefined, facts: BudgetFacts, terms: BudgetTerms = aBudget()) =>
  advanceBudget(before, { policy: 'budget', account: 'default', terms }, facts);
const told = ({ events }: ReturnType<typeof advance>) =>
  events.map(({ kind, step }) => `${kind} ${step.at} ${step.of}`);
const active = ({ spans }: BudgetState, nowMs: number) =>
  spans.filter(({ untilMs }) => untilMs > nowMs).map(({ at: share, of }) => `${share} ${of}`);
const day = (number: number, time = '06:00') => at(`2026-03-${String(number).padStart(2, '0')}T${time}:00Z`);

it('what a step limits is said with both ends, where it has them', () => {
  const size = { low: 0.5, high: 2 };
  const timeout = { low: 60, high: Number.POSITIVE_INFINITY };
  expect(limitsText({ limits: { size, suspend_timeout: timeout } })).toBe(
    'size at least 0.5 CU and at most 2 CU, suspend_after at least 1m',
  );
  expect(limitsText({ limits: { suspend_timeout: { low: timeout.high, high: timeout.high } } })).toBe(
    'suspend_after never',
  );
});

describe('steps by what is projected', () => {
  it('are decided from the eighth day on, once a day at 06:00 of the zone', () => {
    const much = (nowMs: number) => factsAt(nowMs, 4);
    expect(told(advance(undefined, much(day(8, '05:59'))))).toEqual([]);
    const decided = advance(undefined, much(day(8)));
    expect(told(decided)).toEqual(['reached 0.8 projected', 'begun 0.9 projected']);
    expect(decided.state).toMatchObject({ decidedAtMs: day(8), projected: { mid: expect.closeTo(124, 3) } });
    const less = advance(decided.state, factsAt(day(8, '23:00'), 1));
    expect([told(less), active(less.state, day(8, '23:00'))]).toEqual([[], ['0.9 projected']]);
    const berlin = aBudget({ zone: 'Europe/Berlin' });
    expect(told(advance(undefined, much(day(8, '04:59')), berlin))).toEqual([]);
    expect(told(advance(undefined, much(day(8, '05:00')), berlin))).toHaveLength(2);
  });

  it('are decided again after a clock that was far ahead is right', () => {
    const { state } = advance(undefined, factsAt(day(8), 4));
    const monthMs = TO - FROM;
    const ofFuture = {
      ...state,
      fromMs: FROM + 12 * monthMs,
      toMs: TO + 12 * monthMs,
      decidedAtMs: day(8) + 12 * monthMs,
    };
    expect(told(advance(ofFuture, factsAt(day(9), 4)))).toEqual(['reached 0.8 projected', 'begun 0.9 projected']);
    const sameMonth = { ...state, decidedAtMs: day(20), notified: [], spans: [] };
    expect(told(advance(sameMonth, factsAt(day(9), 4)))).toEqual(['reached 0.8 projected', 'begun 0.9 projected']);
  });

  it('are notified by the middle, begin by the lower end, and end by the upper end 5 points below', () => {
    const noisy = (nowMs: number, perDay: number) => {
      const facts = factsAt(nowMs, perDay);
      const days = [...facts.days].map(([dayMs], index) => [dayMs, perDay * (index % 2 === 0 ? 0.6 : 1.4)] as const);
      return { ...facts, days: new Map(days) };
    };
    const unsure = advance(undefined, noisy(day(10), 3));
    const { low = 0, mid = 0 } = unsure.state.projected ?? {};
    expect(low).toBeLessThan(90);
    expect(mid).toBeGreaterThan(90);
    expect(told(unsure)).toEqual(['reached 0.8 projected']);
    const sure = advance(unsure.state, factsAt(day(11), 4));
    expect(told(sure)).toEqual(['begun 0.9 projected']);
    const near = factsAt(day(12), 2.82);
    const stays = advance(sure.state, near);
    expect([(stays.state.projected?.high ?? 0) < 90, told(stays)]).toEqual([true, []]);
    const ended = advance(stays.state, factsAt(day(13), 2.5));
    expect(told(ended)).toEqual(['ended 0.9 projected']);
    expect(ended.state.spans).toMatchObject([{ fromMs: day(11), untilMs: day(13) }]);
  });

  it('are not begun nor ended by missing data', () => {
    const begun = advance(undefined, factsAt(day(10), 4)).state;
    for (const fields of [
      { knownUntilMs: day(11) - 13 * HOUR_MS },
      { days: new Map() },
      { spent: undefined },
      { unknownHours: 1, unknown: 0.02 },
    ] satisfies Partial<BudgetFacts>[]) {
      expect(active(advance(begun, factsAt(day(11), 0.5, fields)).state, day(11))).toEqual(['0.9 projected']);
    }
    expect(told(advance(undefined, factsAt(day(10), 4, { knownUntilMs: day(9) })))).toEqual([]);
    // The unknown half of the days would be enough, if it were like the other.
    const half = factsAt(day(10), 3.2, { spent: 0, unknownHours: 9 * 24, unknown: 9 * 3.2 });
    expect(told(advance(undefined, half))).toEqual([]);
    // Once the data come, the day is decided after all.
    const late = advance(undefined, factsAt(day(10, '06:00'), 4, { knownUntilMs: day(9) }));
    expect(told(advance(late.state, factsAt(day(10, '15:00'), 4)))).toHaveLength(2);
  });

  it('leave out days on which a step limited', () => {
    const begun = advance(undefined, factsAt(day(10), 4)).state;
    const facts = factsAt(day(20), 4);
    const cheaper = new Map([...facts.days].map(([dayMs, used]) => [dayMs, dayMs >= day(10, '00:00') ? 0.1 : used]));
    const { projected } = advance(begun, { ...facts, spent: 40, days: cheaper }).state;
    expect(projected?.mid).toBeCloseTo(40 + 4 * ((TO - day(20, '04:00')) / DAY_MS), 3);
  });
});

describe('steps by what is spent', () => {
  const over = advance(undefined, factsAt(day(5), 4, { spent: 101 }));

  it('begin on any day, and stay to the end of the month', () => {
    expect(told(over)).toEqual(['begun 1 spent']);
    const corrected = advance(over.state, factsAt(day(28), 1, { spent: 60 }));
    expect(active(corrected.state, day(28))).toEqual(['1 spent']);
    expect(corrected.state.spans).toMatchObject([{ fromMs: day(5), untilMs: TO }]);
    expect(stepReached(corrected.state, aBudget(), day(28))).toBe(3);
    const next = { fromMs: TO, toMs: at('2026-05-01T00:00:00Z'), untilMs: TO };
    const new_ = advance(corrected.state, factsAt(TO + 2 * HOUR_MS, 4, { spent: 0, month: next }));
    expect([told(new_), active(new_.state, TO)]).toEqual([['ended 1 spent'], []]);
    expect(new_.state).toMatchObject({ notified: [], fromMs: TO });
  });

  it('do not begin again in a month in which a person has ended them', () => {
    const released = releaseBudget(over.state, day(6));
    const after = advance(released, factsAt(day(7), 4, { spent: 120 }));
    expect([told(after), active(after.state, day(7))]).toEqual([[], []]);
    const next = { fromMs: TO, toMs: at('2026-05-01T00:00:00Z'), untilMs: TO };
    const again = advance(after.state, factsAt(TO + 5 * DAY_MS, 4, { spent: 150, month: next }));
    expect(told(again)).toContain('begun 1 spent');
  });

  it('end where the amount is raised beyond what is spent, and with their step', () => {
    const raised = aBudget({ month: { unit: 'cu_hours', amount: 200 } });
    expect(told(advance(over.state, factsAt(day(6), 4, { spent: 120 }), raised))).toEqual(['ended 1 spent']);
    const unknown = factsAt(day(6), 4, { spent: undefined });
    expect(active(advance(over.state, unknown, raised).state, day(6))).toEqual(['1 spent']);
    const without = aBudget({ steps: aBudget().steps.slice(0, 2) });
    expect(active(advance(over.state, factsAt(day(6), 4, { spent: 120 }), without).state, day(6))).toEqual([]);
  });
});
