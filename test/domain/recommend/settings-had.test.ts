import { describe, expect, it } from 'vitest';
import { settingsOf } from '../../../src/domain/compute/compute.ts';
import { settingsHad } from '../../../src/domain/recommend/settings-had.ts';
import type { ChangeFacts } from '../../../src/domain/records/compute-record.ts';
import { aCompute } from '../../support/builders.ts';
import { DAY, HOUR } from '../../support/demand.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const PAST = { fromMs: TO - 28 * DAY, toMs: TO };
const BASELINE = { minCu: 2, maxCu: 4, suspendTimeoutSeconds: 3600 };
const COMPUTE = aCompute({ minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300, createdAtMs: TO - 100 * DAY });
const PRESENT = settingsOf(COMPUTE);

/** A change of both groups of fields so long ago. */
const changed = (agoMs: number, timeoutAgoMs = agoMs) => ({
  size: { before: {}, answeredAtMs: TO - agoMs },
  suspend_timeout: { before: {}, answeredAtMs: TO - timeoutAgoMs },
});
/** What it had, and the part of the past that is judged, by rules that do not change in it. */
const had = (changes?: ChangeFacts, compute = COMPUTE) => {
  const judged = settingsHad({ compute, baseline: BASELINE, changes }, [{ ...PRESENT, ...PAST }]);
  const [{ fromMs, toMs } = PAST] = judged.rules;
  return { had: judged.had, span: { fromMs, toMs } };
};

describe('the settings that a compute had', () => {
  it('are the baseline until ebb enforced, whatever it has changed since', () => {
    const enforced = { enforcedSinceMs: TO - 10 * DAY + 1, lastChanges: changed(HOUR) };
    expect(had(enforced)).toEqual({ had: BASELINE, span: { fromMs: PAST.fromMs, toMs: TO - 10 * DAY } });
  });

  it('are the present ones since the last change, by ebb or by a person', () => {
    const enforced = { enforcedSinceMs: TO - 20 * DAY, lastChanges: changed(20 * DAY - 1) };
    expect(had(enforced)).toEqual({ had: PRESENT, span: { fromMs: TO - 20 * DAY + HOUR, toMs: TO } });
    const manual = { size: { fields: {}, seenAtMs: TO - 9 * DAY, raises: false } };
    expect(had({ ...enforced, manual, enforcedSinceMs: TO - 90 * DAY })).toEqual({
      had: PRESENT,
      span: { fromMs: TO - 9 * DAY, toMs: TO },
    });
  });

  it('are the widest of both where they change every day, but for a field that has been the same all the time', () => {
    const enforced = { enforcedSinceMs: TO - 90 * DAY, lastChanges: changed(HOUR) };
    const night = aCompute({ ...COMPUTE, suspendTimeoutSeconds: -1 });
    expect(had(enforced, night)).toEqual({ had: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 3600 }, span: PAST });
    const kept = { ...enforced, lastChanges: changed(HOUR, 40 * DAY) };
    expect(had(kept, night).had.suspendTimeoutSeconds).toBe(-1);
  });

  it('are the widest of both while ebb only observes, and of a compute that is younger than a week', () => {
    const widest = { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 };
    expect(had()).toEqual({ had: widest, span: PAST });
    const young = aCompute({ ...COMPUTE, createdAtMs: TO - 6 * DAY });
    expect(had({ enforcedSinceMs: TO - HOUR, lastChanges: changed(HOUR) }, young)).toEqual({ had: widest, span: PAST });
  });

  it('come with the rules of that part alone', () => {
    const noon = TO - 12 * DAY;
    const rules = [
      { ...BASELINE, fromMs: PAST.fromMs, toMs: noon },
      { ...PRESENT, fromMs: noon, toMs: TO },
    ];
    const changes = { enforcedSinceMs: TO - 10 * DAY, lastChanges: changed(HOUR) };
    expect(settingsHad({ compute: COMPUTE, baseline: BASELINE, changes }, rules).rules).toEqual([
      { ...BASELINE, fromMs: PAST.fromMs, toMs: noon },
      { ...PRESENT, fromMs: noon, toMs: TO - 10 * DAY },
    ]);
    expect(settingsHad({ compute: COMPUTE }, [])).toEqual({ had: PRESENT, rules: [] });
  });
});
