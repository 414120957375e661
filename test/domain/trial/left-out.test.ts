import { expect, it } from 'vitest';
import type { SavingsReport } from '../../../src/cli/savings/report.ts';
import { savingsText } from '../../../src/cli/savings/text.ts';
import { unknownBefore } from '../../../src/domain/evaluate/trials.ts';
import { at } from '../../support/builders.ts';

const NEITHER = { control: null, treated: null };
const REASON = unknownBefore({
  slot: 0,
  flipDelayMs: 0,
  baseline: null,
  terms: 't',
  sinceMs: at('2026-03-10T09:00:00Z'),
});

it('a trial of which every project was first seen after its start says that nothing is counted, and why', () => {
  const text = savingsText({
    ...{ trial: 'proof', from: '2026-03-02', to: '2026-03-20', unit: 'project', state: 'interim', has_begun: true },
    ...{ units: 0, effective_units: 0, unit_days: { control: 0, treated: 0 }, unknown_hours: 0, relative: null },
    ...{ cu_hours: null, usd: null, trial_cost: { cu_hours: null, usd: null }, distinguishable: null },
    ...{ compliance: NEITHER, starts_per_unit_day: { ...NEITHER, difference: null }, stopped_at: null },
    ...{ periods_left_out: [], undos: null, policies_changed: null, left_out: [{ unit: 'p-1', reason: REASON }] },
  } as unknown as SavingsReport);
  expect(text).toContain('Trial proof, 2026-03-02 to 2026-03-20: nothing is counted: every project is left out.');
  const when = 'ebb first had it in the trial at 2026-03-10T09:00:00Z, after the start';
  expect(text).toContain(`  left out  p-1: ${when}: its settings before are unknown, so it is never counted`);
});
