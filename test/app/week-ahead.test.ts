import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createWeekAhead } from '../../src/app/operator/week-ahead.ts';
import { forecast } from '../../src/domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../src/domain/policy/compiled-policies.ts';
import { aCompute, aHold, aSchedule, at, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const NOW = at('2026-03-02T12:00:00Z');
const WEEK_MS = 7 * 86_400_000;

/** Each look at the time takes `lookMs`. */
function weekAheadOf(policies: () => CompiledPolicies, lookMs = 0) {
  let ms = 0;
  const monotonicMs = () => {
    ms += lookMs;
    return ms;
  };
  return createWeekAhead({ policies, clock: { monotonicMs, nextTurn: systemClock().nextTurn } });
}

describe('the week ahead', () => {
  it('is what a forecast says, for each compute its own, also later from what was worked out before', async () => {
    const policies = compiled(aSchedule());
    const week = weekAheadOf(() => policies);
    const freeze = {
      ...{ id: 'f', owner: 'ann', reason: 'r', select: 'all' as const, allowRaise: false },
      ...{ createdAtMs: 0, expiresAtMs: NOW + 86_400_000 },
    };
    const held = aCompute({ computeId: 'ep-held' });
    const subjects = [
      { compute: aCompute({ computeId: 'ep-a' }) },
      { compute: aCompute({ computeId: 'ep-other', projectName: 'other', suspendTimeoutSeconds: 60 }) },
      { compute: held, holds: [aHold({ computeId: 'ep-held', size: { minCu: 8, maxCu: 8 } })] },
      { compute: aCompute({ computeId: 'ep-young', createdAtMs: NOW }) },
      { compute: aCompute({ computeId: 'ep-frozen' }), freezes: [freeze] },
      { compute: aCompute({ computeId: 'ep-by-hand' }), respected: { size: NOW + 86_400_000 } },
    ];
    for (const nowMs of [NOW, NOW + 60_000]) {
      const expected = subjects.map((subject) => ({
        state: 'known',
        segments: forecast({ ...subject, policies, fromMs: nowMs, toMs: nowMs + WEEK_MS }).segments,
      }));
      expect(await week.of(subjects, nowMs)).toEqual(expected);
    }
  });

  it('is computed again when policies change', async () => {
    let policies = compiled(aSchedule());
    const week = weekAheadOf(() => policies);
    const subjects = [{ compute: aCompute() }];
    const [before] = await week.of(subjects, NOW);
    policies = compiled(aSchedule({ otherwise: { size: { minCu: 3, maxCu: 3 } } }));
    const [after] = await week.of(subjects, NOW);
    expect(JSON.stringify(before)).not.toContain('"minCu":3');
    expect(JSON.stringify(after)).toContain('"minCu":3');
  });

  it('says that it is not known yet where there is too much to work out at once, and goes on with the next question', async () => {
    const policies = compiled(aSchedule());
    const week = weekAheadOf(() => policies, 400);
    const subjects = [60, 120, 180].map((seconds) => ({ compute: aCompute({ suspendTimeoutSeconds: seconds }) }));
    const states = async () => (await week.of(subjects, NOW)).map(({ state }) => state);
    expect(await states()).toEqual(['known', 'not_yet', 'not_yet']);
    expect(await states()).toEqual(['known', 'known', 'not_yet']);
    expect(await states()).toEqual(['known', 'known', 'known']);
  });

  it('is not worked out for a policy that changes all the time', async () => {
    const often = { kind: 'cron', cron: '*/5 * * * *', forMs: 60_000, zone: 'UTC' } as const;
    const policies = compiled(
      aSchedule({ name: 'often', select: aSelector({ projects: ['busy'] }), windows: [{ at: [often] }] }),
      aSchedule({ select: aSelector({ projects: ['calm'] }) }),
    );
    const week = weekAheadOf(() => policies);
    const subjects = ['busy', 'calm'].map((projectName) => ({ compute: aCompute({ projectName }) }));
    expect((await week.of(subjects, NOW)).map(({ state }) => state)).toEqual(['too_often', 'known']);
  });
});
