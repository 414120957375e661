import { describe, expect, it } from 'vitest';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import { removedProtections } from '../../src/domain/policy/policy-set.ts';
import { aSchedule, aWindow } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const base = { file: 'f.yaml', mode: 'enforce' as const, priority: 0, select: aSelector({ projects: ['*'] }) };
const freeze: FreezePolicy = { ...base, kind: 'freeze', name: 'still', at: [aWindow()], allowRaise: false };
const limits: LimitsPolicy = { ...base, kind: 'limits', name: 'cap', size: { maxCu: 4 }, hard: true };
const schedule = aSchedule({ name: 'day', windows: [{ at: [aWindow()] }, { at: [aWindow({ days: [6] })] }] });
const all = [schedule, freeze, limits];

describe('between two policy sets', () => {
  it.each([
    ['a freeze that is gone', [schedule, limits], ['freeze still is gone']],
    ['a hard limit that is gone', [schedule, freeze], ['hard limit cap is gone']],
    ['a policy that is gone', [freeze, limits], ['policy day is gone']],
    ['a limit that is hard no more', [schedule, freeze, { ...limits, hard: false }], ['hard limit cap was changed']],
    [
      'a freeze for fewer computes',
      [schedule, { ...freeze, select: aSelector({ projects: ['a'] }) }, limits],
      ['freeze still was changed'],
    ],
    [
      'a freeze that only observes',
      [schedule, { ...freeze, mode: 'observe' as const }, limits],
      ['freeze still only observes'],
    ],
    [
      'a window that is gone',
      [{ ...schedule, windows: schedule.windows.slice(0, 1) }, freeze, limits],
      ['a window of day is gone'],
    ],
    ['everything', [], ['policy day is gone', 'freeze still is gone', 'hard limit cap is gone']],
  ])('%s has vanished', (_what, after, expected) => {
    expect(removedProtections(all, after)).toEqual(expected);
  });

  it('nothing vanishes where policies are added, moved to another file, or schedules want something else', () => {
    const other = { ...schedule, otherwise: 'leave' as const };
    expect(
      removedProtections(all, [
        aSchedule({ name: 'more' }),
        ...[other, freeze, limits].map((one) => ({ ...one, file: 'g.yaml' })),
      ]),
    ).toEqual([]);
  });
});
