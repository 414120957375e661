import { describe, expect, it } from 'vitest';
import {
  forgetTrial,
  type KeptTrial,
  keepTrialDays,
  keepTrialPolicies,
  readPolicyChanges,
  readTrialDays,
} from '../../src/app/usage/trial-days.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { mergeUsage, noUsage } from '../../src/domain/usage/stored.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

const PLACE = { account: 'main', organization: 'org' };
const UNIT = { projectId: 'one', branchId: null };
const FROM_DAY = Date.parse('2026-03-23T00:00:00Z') / DAY_MS;
/** Local midnight in Berlin, before daylight saving begins on 29 March. */
const FROM_MS = FROM_DAY * DAY_MS - HOUR_MS;
const TRIAL: KeptTrial = {
  name: 'proof',
  design: { seed: '', oneOf: 2, rotateDays: 7, fromDay: FROM_DAY, periods: 8, zone: 'Europe/Berlin' },
  units: [UNIT],
};

function start() {
  const store = memoryUsageStore();
  const stored = usageAccount(store, PLACE);
  const days = async () => (await readTrialDays(store, PLACE, 'proof', [UNIT])).get('one');
  return {
    ...{ store, stored, days },
    /** Adds hours, each of so many CU-seconds. */
    async add(fromMs: number, hours: number, cuSeconds: number | null) {
      const [before = noUsage(UNIT)] = await stored.read([UNIT]);
      const buckets = Array.from({ length: hours }, (_, hour) => ({
        ...{ startMs: fromMs + hour * HOUR_MS, seconds: 3600, cuSeconds },
      }));
      await stored.put([mergeUsage(before, { buckets }).usage]);
    },
    keep: (nowMs: number) => keepTrialDays(store, PLACE, { stored, trial: TRIAL, nowMs }),
  };
}

describe('the local days of a trial', () => {
  it('are kept for longer than hours are, also over a change of the clocks', async () => {
    const { add, keep, days } = start();
    for (let day = 0; day < 40; day += 1) {
      await add(FROM_MS + day * DAY_MS, 24, 100);
      await keep(FROM_MS + (day + 1) * DAY_MS);
    }
    const known = await days();
    expect(known?.size).toBe(40);
    // 29 March has 23 hours.
    expect([...(known ?? [])].map(([, { cuSeconds }]) => cuSeconds)).toEqual(
      Array.from({ length: 40 }, (_, day) => (day === 6 ? 2300 : 2400)),
    );
  });

  it('say how many hours are not known, until they are', async () => {
    const { add, keep, days } = start();
    await add(FROM_MS, 20, 100);
    await add(FROM_MS + 20 * HOUR_MS, 4, null);
    await keep(FROM_MS + DAY_MS);
    expect(await days()).toEqual(new Map([[FROM_DAY, { cuSeconds: null, unknownHours: 4 }]]));
    await add(FROM_MS + 20 * HOUR_MS, 4, 50);
    await keep(FROM_MS + DAY_MS);
    expect(await days()).toEqual(new Map([[FROM_DAY, { cuSeconds: 2200, unknownHours: 0 }]]));
  });

  it('need at most 3 KB for a unit in a year, and go with the trial', async () => {
    const { add, keep, days, store } = start();
    const year = { ...TRIAL, design: { ...TRIAL.design, periods: 52 } };
    for (let day = 0; day < 364; day += 7) {
      await add(FROM_MS + day * DAY_MS, 7 * 24, 3600);
      await keepTrialDays(store, PLACE, {
        stored: usageAccount(store, PLACE),
        trial: year,
        nowMs: FROM_MS + (day + 7) * DAY_MS,
      });
    }
    expect((await days())?.size).toBe(364);
    const [bytes] = [...(store.bytes.get('main/org/trial/proof') ?? new Map()).values()];
    expect(bytes.length).toBeLessThanOrEqual(3 * 1024);
    await forgetTrial(store, PLACE, 'proof');
    expect(await days()).toBeUndefined();
    await keep(FROM_MS - DAY_MS);
    expect(await days()).toBeUndefined();
  });
});

it('changes of policies in an earlier trial of the same name are none of the present one', async () => {
  const { store } = start();
  const again = { ...TRIAL, design: { ...TRIAL.design, fromDay: FROM_DAY + 100 } };
  const note = (trial: KeptTrial, day: number, revision: string) =>
    keepTrialPolicies(store, PLACE, trial, { atMs: FROM_MS + day * DAY_MS, setHash: 'a1', revision });
  const revisions = async (trial: KeptTrial) =>
    (await readPolicyChanges(store, PLACE, trial))?.map(({ revision }) => revision);
  await note(TRIAL, 1, 'v1');
  await note(TRIAL, 2, 'v2');
  expect([await revisions(TRIAL), await revisions(again)]).toEqual([['v2'], undefined]);
  // The policies at the start are noted also if they are the last ones of the earlier trial.
  await note(again, 101, 'v2');
  expect(await revisions(again)).toEqual([]);
  await note(again, 102, 'v3');
  expect(await revisions(again)).toEqual(['v3']);
});
