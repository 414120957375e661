import { expect, it } from 'vitest';
import { readyWavesJson, waveLines, withFleetWaves } from '../../../src/cli/forecast/fleet-waves.ts';
import { foresee } from '../../../src/cli/forecast/outlook.ts';
import { aCompute, aSchedule, at, aWindow, compiled } from '../../support/builders.ts';
import { PRICING } from './foreseen-fleet.ts';

const SMALL = { minCu: 0.25, maxCu: 0.5 };
const span = { fromMs: at('2026-03-02T00:00:00Z'), toMs: at('2026-03-03T00:00:00Z') };
const settings = { apiRequestsPerMinute: 700, apiReserve: 0.05, accounts: [] };
const policies = compiled(
  aSchedule({
    windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 }, readyLeadMs: 180_000, readyInWaves: true }],
    otherwise: { size: SMALL },
  }),
);
const subjects = Array.from({ length: 500 }, (_, index) => ({
  compute: aCompute({ computeId: `ep-${index}`, projectId: `p-${index}`, state: 'idle', ...SMALL }),
}));

it('a forecast names each wave of a herd, and each compute has its size from its wave on', () => {
  const known = withFleetWaves(policies, { subjects, readyWaves: [], settings, span });
  const json = readyWavesJson(known.readyWaves, span);
  expect(json).toEqual([
    {
      account: 'default',
      opens_at: '2026-03-02T08:00:00Z',
      waves: [
        { begins_at: '2026-03-02T07:59:30Z', computes: 120 },
        { begins_at: '2026-03-02T07:59:45Z', computes: 380 },
      ],
    },
  ]);
  expect(waveLines(known.readyWaves, span)).toEqual([
    'Ready at 2026-03-02T08:00:00Z (account default), in waves of 15 s: 120 from 07:59:30Z, 380 from 07:59:45Z.',
  ]);
  const raised = foresee({ ...span, policies: known, subjects, pricing: PRICING }).map(
    ({ segments }) => segments.find(({ maxCu }) => maxCu === 4)?.fromMs,
  );
  for (const { begins_at, computes } of json[0]?.waves ?? []) {
    expect(raised.filter((ms) => ms === Date.parse(begins_at))).toHaveLength(computes);
  }
});

it('waves that daemons have fixed for the same policies count, those of other policies don’t', () => {
  const fixed = {
    ...{ account: 'default', opensAtMs: at('2026-03-02T08:00:00Z'), setHash: policies.set.hash },
    waves: [{ leadMs: 60_000, computes: 7, last: { priority: 0, part: 1 } }],
  };
  const wavesWith = (setHash: string) =>
    withFleetWaves(policies, { subjects, readyWaves: [{ ...fixed, setHash }], settings, span }).readyWaves;
  expect(wavesWith(policies.set.hash)).toEqual([fixed]);
  expect(wavesWith('other')).toMatchObject([{ waves: [{ computes: 120 }, { computes: 380 }] }]);
  expect(waveLines([fixed], span)).toEqual([]);
});
