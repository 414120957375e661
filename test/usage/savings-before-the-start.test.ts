import { describe, expect, it } from 'vitest';
import type { TrialRead } from '../../src/cli/savings/read-trial.ts';
import { savingsReport } from '../../src/cli/savings/report.ts';
import { savingsText } from '../../src/cli/savings/text.ts';
import { at, compiled } from '../support/builders.ts';

const DAY_MS = 86_400_000;
const design = {
  zone: 'UTC',
  seed: 'a',
  oneOf: 4,
  rotateDays: 7,
  periods: 8,
  fromDay: at('2026-11-30T00:00:00Z') / DAY_MS,
};

/** A trial without units at an instant, with usage known until one. */
function reportAt(now: string, usedUntil: string, stoppedAtMs?: number) {
  const trial = { name: 'proof', unit: 'project', design };
  const none = { policies: compiled(), computes: [], units: [], kept: [] };
  return savingsReport(
    { ...none, trial, stoppedAtMs, nowMs: at(now), usedUntilMs: at(usedUntil) } as unknown as TrialRead,
    {},
  );
}

describe('ebb savings about the start of a trial', () => {
  it('says before it when it is, and of no period that ends before it begins', () => {
    const report = reportAt('2026-11-22T12:00:00Z', '2026-11-22T09:00:00Z');
    expect(report).toMatchObject({ has_begun: false, starts_on: '2026-11-30', from: '2026-11-30', to: '2026-11-30' });
    expect(savingsText(report)).toBe('Trial proof has not begun; starts 2026-11-30');
  });

  it('shows what is measured from then on, and usage of a simulated time too', () => {
    expect(savingsText(reportAt('2026-11-30T00:00:00Z', '2026-11-29T22:00:00Z'))).toMatch(
      /^Trial proof, 2026-11-30 to 2026-11-30: not measurable/,
    );
    expect(savingsText(reportAt('2026-11-22T12:00:00Z', '2026-12-05T00:00:00Z'))).toMatch(
      /^Trial proof, 2026-11-30 to 2026-12-05: not measurable/,
    );
  });

  it('says when it was ended by its cost, and counts no day from then on', () => {
    const report = reportAt('2027-03-01T00:00:00Z', '2027-03-01T00:00:00Z', at('2026-12-20T07:00:00Z'));
    expect(report).toMatchObject({
      ...{ state: 'stopped', stopped_at: '2026-12-20T07:00:00Z', to: '2026-12-20', distinguishable: null },
    });
    expect(savingsText(report)).toContain('stopped   2026-12-20T07:00:00Z, by stop_if');
    expect(reportAt('2026-12-01T00:00:00Z', '2026-12-01T00:00:00Z').stopped_at).toBeNull();
  });
});
