import { describe, expect, it } from 'vitest';
import type { GuardTerms } from '../../../src/domain/guards/guard.ts';
import {
  judgeBy,
  limitsFrom,
  PAST_STEP_MS,
  type PastReadings,
  type Sample,
  type Series,
} from '../../../src/domain/guards/verdict.ts';
import { aCompute, at } from '../../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const DAY_MS = 86_400_000;
const compute = aCompute({ projectName: 'shop', computeId: 'ep-shop' });
const guard = (terms: Partial<GuardTerms> = {}): GuardTerms => ({
  ...{ source: 'main', query: 'latency', isAlert: false, match: { service: '{project_name}' }, noData: 'unknown' },
  badWhen: { side: 'above', limit: 0.4, relative: false },
  ...terms,
});
const series = (samples: readonly Sample[], service = 'shop'): Series => ({ labels: { service }, samples });
const now = (value: number, service = 'shop') => series([{ atMs: NOON, value }], service);
const hour = (values: readonly number[], fromMs: number) =>
  series(values.map((value, index) => ({ atMs: fromMs + index * PAST_STEP_MS, value })));
const verdict = (terms: Partial<GuardTerms>, readings: Partial<PastReadings> & { latest: readonly Series[] }) => {
  const { latest, days = [], sameHours = [] } = readings;
  return judgeBy(guard(terms), latest, limitsFrom(guard(terms), { days, sameHours }))(compute, NOON);
};

describe('a guard with a limit', () => {
  it('is bad beyond it, on the side that it names, and healthy at it', () => {
    expect(verdict({}, { latest: [now(0.5)] })).toMatchObject({ state: 'bad', message: '0.5, bad above 0.4' });
    expect(verdict({}, { latest: [now(0.4)] }).state).toBe('healthy');
    expect(verdict({}, { latest: [now(Number.POSITIVE_INFINITY)] }).message).toBe('+Inf, bad above 0.4');
    const below = { badWhen: { side: 'below', limit: 0.4, relative: false } } as const;
    expect([verdict(below, { latest: [now(0.5)] }).state, verdict(below, { latest: [now(0.3)] }).state]).toEqual([
      'healthy',
      'bad',
    ]);
  });

  it('is unknown without a series of the compute, and without a value', () => {
    const message = 'no series has its service="shop"';
    expect(verdict({}, { latest: [now(0.1, 'web')] })).toEqual({ state: 'unknown', message });
    expect(verdict({}, { latest: [{ labels: {}, samples: [{ atMs: NOON, value: 0.1 }] }] }).state).toBe('unknown');
    expect(verdict({}, { latest: [series([])] }).state).toBe('unknown');
    expect(verdict({ noData: 'healthy' }, { latest: [] }).state).toBe('healthy');
  });

  it('is unknown with two series of one compute, of which an alert may have many', () => {
    const latest = [now(0.1), now(0.9)];
    expect(verdict({}, { latest })).toMatchObject({ state: 'unknown', message: expect.stringContaining('2 series') });
    expect(verdict({ isAlert: true, noData: 'healthy' }, { latest }).state).toBe('bad');
  });

  it('counts only series with a sample: NaN is none', () => {
    expect(verdict({}, { latest: [now(0.1), series([])] }).state).toBe('healthy');
  });

  it('keeps the value that it cannot compare yet', () => {
    const badWhen = { side: 'above', limit: 1.5, relative: true } as const;
    expect(verdict({ badWhen }, { latest: [now(0.1)], days: [] })).toMatchObject({ state: 'unknown', value: 0.1 });
  });

  it('knows computes by several labels, and by a mapping of values to projects', () => {
    const latest = [{ labels: { service: 'checkout', zone: 'eu' }, samples: [{ atMs: NOON, value: 0.5 }] }];
    expect(verdict({ match: { service: { checkout: 'shop', admin: 'other' }, zone: 'eu' } }, { latest }).state).toBe(
      'bad',
    );
    expect(verdict({ match: { service: { checkout: 'other' }, zone: 'eu' } }, { latest }).state).toBe('unknown');
    expect(verdict({ match: { service: '{branch_name}' } }, { latest }).state).toBe('unknown');
  });
});

describe('a guard relative to before', () => {
  const relative = { badWhen: { side: 'above', limit: 1.5, relative: true } } as const;
  const quiet = Array.from({ length: 12 }, () => 0.1);

  it('compares with the median of the last hour awake, however long ago that was', () => {
    const days = [hour([...quiet.slice(1), 9], NOON - DAY_MS / 2)];
    expect(verdict(relative, { latest: [now(0.16)], days })).toMatchObject({
      state: 'bad',
      limit: expect.closeTo(0.15),
    });
    expect(verdict(relative, { latest: [now(0.14)], days }).state).toBe('healthy');
  });

  it('is unknown with less than half an hour of values, and with values of another day alone', () => {
    expect(verdict(relative, { latest: [now(9)], days: [hour(quiet.slice(7), NOON - DAY_MS / 2)] }).state).toBe(
      'unknown',
    );
    expect(verdict(relative, { latest: [now(9)], days: [hour(quiet, NOON - 2 * DAY_MS)] }).state).toBe('unknown');
  });

  it('is not bad where the same hours of the last two weeks were as bad once', () => {
    const batch = quiet.map(() => 0.8);
    const readings = { latest: [now(0.7)], days: [hour(quiet, NOON - DAY_MS / 2)] };
    const others = Array.from({ length: 13 }, (_, day) => [hour(quiet, NOON - (day + 1) * DAY_MS)]);
    expect(verdict(relative, { ...readings, sameHours: others }).state).toBe('bad');
    expect(verdict(relative, { ...readings, sameHours: [...others, [hour(batch, NOON - 14 * DAY_MS)]] }).state).toBe(
      'healthy',
    );
    const outlier = [...quiet.slice(1), 9];
    expect(verdict(relative, { ...readings, sameHours: [...others, [hour(outlier, NOON - 14 * DAY_MS)]] }).state).toBe(
      'bad',
    );
  });

  it('compares with this hour on earlier days, too: a batch that makes each of them slower is no harm', () => {
    const days = [hour(quiet, NOON - DAY_MS / 2)];
    const slower = quiet.map(() => 0.12);
    const sameHours = Array.from({ length: 14 }, (_, day) => [hour(slower, NOON - (day + 1) * DAY_MS)]);
    const at = (value: number) => verdict(relative, { latest: [now(value)], days, sameHours });
    expect(at(0.17)).toMatchObject({ state: 'healthy', limit: expect.closeTo(0.18) });
    expect(at(0.19).state).toBe('bad');
  });

  it('below what it was before is bad where that is named', () => {
    const below = { badWhen: { side: 'below', limit: 0.5, relative: true } } as const;
    const days = [hour(quiet, NOON - DAY_MS / 2)];
    expect(verdict(below, { latest: [now(0.04)], days }).state).toBe('bad');
    expect(verdict(below, { latest: [now(0.06)], days }).state).toBe('healthy');
  });
});
