import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ownersOf } from '../../src/domain/policy/owners.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import { type BillInput, billOf } from '../../src/domain/usage/bill.ts';
import { billingMonth, priceAt } from '../../src/domain/usage/month.ts';
import type { UsageSeries } from '../../src/domain/usage/usage.ts';
import { aCompute, aFreeze, aLimits, aSchedule, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { DAY_MS, HOUR_MS, START_MS } from './support.ts';

function series(projectId: string, branchId: string | null, days: readonly (number | null)[]): UsageSeries {
  const buckets = days.map((cuSeconds, index) => ({ startMs: START_MS + index * DAY_MS, seconds: 86_400, cuSeconds }));
  return { projectId, branchId, buckets };
}

function bill(all: UsageSeries[], changes: Partial<BillInput> = {}) {
  const byBranch: Partial<BillInput> = { lineOf: ({ branchId, projectId }) => branchId ?? projectId, byProject: false };
  const span = { fromMs: START_MS, toMs: START_MS + 2 * DAY_MS };
  return billOf({ ...span, priceAt: () => 0.1, ...byBranch, ...changes, series: all } as BillInput);
}

describe('a bill', () => {
  it('shares the figure of a project among its branches, and names the rest', () => {
    const { lines, total } = bill([
      series('p', null, [100, 50]),
      series('p', 'a', [60, 20]),
      series('p', 'b', [30, 30]),
    ]);
    expect(Object.fromEntries(lines.map(({ name, cuSeconds }) => [name, cuSeconds]))).toEqual({
      ...{ a: 80, b: 60, unattributed: 10 },
    });
    expect(total).toMatchObject({ cuSeconds: 150, unknownHours: 0, usd: expect.closeTo((150 / 3600) * 0.1, 12) });
  });

  it('is the same to the last digit in whatever order projects and branches come', () => {
    const all = ['p', 'q', 'r', 's', 't'].flatMap((project, index) => [
      series(project, null, [1001 + 7 * index, 333 + index]),
      series(project, `${project}-a`, [501 + 3 * index, 111]),
      series(project, `${project}-b`, [77 + index, 19]),
    ]);
    const ofOne = { lineOf: () => 'one', priceAt: () => 0.222 };
    const orders = [
      all,
      all.toReversed(),
      all.toSorted((a, b) => (a.buckets[0]?.cuSeconds ?? 0) - (b.buckets[0]?.cuSeconds ?? 0)),
    ];
    expect(new Set(orders.map((order) => bill(order, ofOne).total.usd)).size).toBe(1);
  });

  it('counts unknown hours, and adds nothing for them', () => {
    const { total } = bill([series('p', null, [100, null]), series('p', 'a', [100, null])]);
    expect(total).toMatchObject({ cuSeconds: 100, unknownHours: 24 });
  });

  it('counts days without any bucket as unknown', () => {
    expect(bill([series('p', null, [100])]).total.unknownHours).toBe(24);
  });

  it('has what branches show where their project shows less', () => {
    const { total } = bill([series('p', null, [100, null]), series('p', 'a', [80, 70])]);
    expect(total).toMatchObject({ cuSeconds: 170, unknownHours: 24 });
  });

  it('has a price for each day, and none where one is not known', () => {
    const priced = (startMs: number) => (startMs < START_MS + DAY_MS ? 0.1 : 0.2);
    expect(bill([series('p', null, [3600, 3600])], { priceAt: priced }).total.usd).toBeCloseTo(0.3, 12);
    expect(bill([series('p', null, [3600, 3600])], { priceAt: () => undefined }).total.usd).toBeUndefined();
  });

  it('has lines that sum to the figures of the projects, whatever is known of branches', () => {
    const value = fc.option(fc.integer({ min: 0, max: 100_000 }), { nil: null });
    const project = fc.tuple(fc.tuple(value, value), fc.array(fc.tuple(value, value), { maxLength: 3 }));
    fc.assert(
      fc.property(fc.array(project, { minLength: 1, maxLength: 3 }), fc.boolean(), (projects, byProject) => {
        const all = projects.flatMap(([own, branches], index) => [
          series(`p${index}`, null, own),
          ...branches.map((days, place) => series(`p${index}`, `b${place}`, days)),
        ]);
        const { lines, total } = bill(all, byProject ? { byProject, lineOf: ({ projectId }) => projectId } : {});
        const least = projects.reduce((sum, [own]) => sum + (own[0] ?? 0) + (own[1] ?? 0), 0);
        const missing = projects.reduce((sum, [own]) => sum + own.filter((one) => one === null).length, 0);
        expect(total.cuSeconds).toBeGreaterThanOrEqual(least);
        expect(total.unknownHours).toBe(24 * missing);
        if (missing === 0) expect(total.cuSeconds).toBe(least);
        expect(lines.reduce((sum, { cuSeconds }) => sum + cuSeconds, 0)).toBe(total.cuSeconds);
      }),
    );
  });
});

describe('a billing month', () => {
  const ms = (text: string) => Date.parse(`${text}T00:00:00Z`);
  const nowMs = Date.parse('2026-11-22T10:20:00Z');

  it('ends two hours ago while it lasts', () => {
    expect(billingMonth(nowMs, [], nowMs)).toEqual({
      ...{ fromMs: ms('2026-11-01'), toMs: ms('2026-12-01'), untilMs: ms('2026-11-22') + 8 * HOUR_MS },
    });
  });

  it('begins with the period of the account', () => {
    const plans = [ms('2026-09-12'), ms('2026-10-12'), ms('2026-11-12')].map((at) => [at, 'scale'] as const);
    expect(billingMonth(ms('2026-10-01'), plans, nowMs)).toMatchObject({
      fromMs: ms('2026-10-12'),
      toMs: ms('2026-11-12'),
    });
  });

  it('is not cut by a change of plan', () => {
    const plans = [[ms('2026-10-01'), 'launch'] as const, [ms('2026-10-20'), 'scale'] as const];
    expect(billingMonth(ms('2026-10-01'), plans, nowMs)).toMatchObject({
      fromMs: ms('2026-10-01'),
      toMs: ms('2026-11-01'),
    });
  });

  it('costs by the plan of each instant, else by that of the settings', () => {
    const prices = { free: 0, launch: 0.1, scale: 0.2 };
    const plans = [[ms('2026-10-01'), 'launch'] as const, [ms('2026-10-20'), 'scale'] as const];
    const at = (day: string) => priceAt(ms(day), { plans, prices, otherwise: undefined });
    expect([at('2026-10-19'), at('2026-10-20'), at('2026-09-30')]).toEqual([0.1, 0.2, undefined]);
    expect(priceAt(0, { plans: [], prices, otherwise: 'scale' })).toBe(0.2);
    expect(priceAt(0, { plans: [[0, 'business']], prices, otherwise: 'scale' })).toBeUndefined();
  });
});

describe('the owner of usage', () => {
  const computes = [
    aCompute({ projectId: 'p-1', projectName: 'web-shop', branchId: 'b-1', branchName: 'main' }),
    aCompute({
      projectId: 'p-1',
      projectName: 'web-shop',
      branchId: 'b-2',
      branchName: 'preview/7',
      computeId: 'ep-2',
    }),
  ];
  const everything = { select: aSelector({}) };
  const policies = compiled(
    aSchedule({ name: 'low', owner: 'low', priority: 1, ...everything }),
    aLimits({ name: 'high', owner: 'high', priority: 2, select: aSelector({ computes: ['ep-one'] }) }),
    aFreeze({ name: 'freeze', owner: 'freeze', priority: 9, ...everything }),
  );
  const main = { projectId: 'p-1', branchId: 'b-1' };
  const preview = { projectId: 'p-1', branchId: 'b-2' };

  it.each([
    [
      'the first rule that matches',
      [
        ['dev-*', 'dev'],
        ['web-*', 'web'],
        ['*', 'all'],
      ],
      main,
      'web',
    ],
    ['a rule on a branch', [['web-shop/preview/*', 'previews']], preview, 'previews'],
    ['the policy of highest priority that selects it', [], main, 'high'],
    ['a policy, and not one that only freezes', [], preview, 'low'],
    ['nobody, where nothing is known of it', [], { projectId: 'gone', branchId: 'b-9' }, 'unowned'],
  ] as const)('is by %s', (_, rules, unit, owner) => {
    expect(ownersOf({ rules: rules.map(([glob, name]) => [glob, name] as const), policies, computes })(unit)).toBe(
      owner,
    );
  });

  describe('with teams', () => {
    const scopes = [
      [['web-*', '!web-lab'], 'team-web'],
      [['*'], 'team-data'],
    ] as const;
    const ofPlatform = aLimits({ name: 'ceiling', owner: 'platform', priority: 9, ...everything });
    const ofData = aSchedule({ name: 'team-data/o', team: 'team-data', owner: 'team-data', ...everything });
    const lab = [aCompute({ projectId: 'p-2', projectName: 'web-lab', branchId: 'b-1' })];

    it.each([
      ['the team of its scope before the owner of files of no team', [ofPlatform], scopes, computes, 'team-web'],
      ['the team of its scope where no policy selects it', [], scopes, computes, 'team-web'],
      ['the team whose policy selects it, where scopes overlap', [ofPlatform, ofData], scopes, computes, 'team-data'],
      ['what the scope of a team leaves out is not of the team', [ofPlatform], scopes.slice(0, 1), lab, 'platform'],
      ['a label before a team', [ofPlatform], [['web-*', 'label'], ...scopes], computes, 'label'],
      [
        'the team of its scope while its policies are not loaded',
        [ofPlatform, ...unloadedPart({ name: 'team-web', projects: ['web-*'] }).policies],
        scopes,
        computes,
        'team-web',
      ],
    ] as const)('is %s', (_, all, rules, ofUnit, owner) => {
      const [{ projectId, branchId }] = ofUnit as [(typeof computes)[0]];
      expect(ownersOf({ rules, policies: compiled(...all), computes: ofUnit })({ projectId, branchId })).toBe(owner);
      const gone = { rules, policies: compiled(...all), computes: [], projects: ofUnit };
      expect(ownersOf(gone)({ projectId, branchId: null })).toBe(owner);
    });
  });
});
