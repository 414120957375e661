/** A whole rotation of a trial, as a daemon would go through it that looks once an hour and at every boundary. */
import { describe, expect, it } from 'vitest';
import { type Compute, type ComputeSettings, settingsOf } from '../../../src/domain/compute/compute.ts';
import { lastBoundary, searchBoundary } from '../../../src/domain/decide/boundaries.ts';
import { evaluateNow, isReverted } from '../../../src/domain/evaluate/evaluate.ts';
import { withTrials } from '../../../src/domain/evaluate/trials.ts';
import { withWanted } from '../../../src/domain/evaluate/wanted-since.ts';
import { forecast } from '../../../src/domain/forecast/forecast.ts';
import { detectManualChanges, withAgreed } from '../../../src/domain/plan/manual-changes.ts';
import { gatesOf } from '../../../src/domain/plan/plan.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import { drawOf } from '../../../src/domain/trial/assignment.ts';
import { aCompute, aRecord, aSchedule, aTrial, at, aWindow, compiled } from '../../support/builders.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FROM = at('2026-03-02T00:00:00Z');
const UNTIL = FROM + 28 * DAY;
/** What a lowering waits for sleep, unless a policy says otherwise. */
const DEADLINE = 2 * HOUR;
const BASELINE: ComputeSettings = { minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 };
const NIGHT: ComputeSettings = { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 };

const TRIAL = aTrial({ design: { ...aTrial().design, periods: 4 } });
const EXTRA = aSchedule({
  ...{ name: 'saturday', priority: 5, otherwise: 'leave' },
  windows: [{ at: [aWindow({ days: [6], startMinute: 600, endMinute: 720 })], size: { minCu: 4, maxCu: 4 } }],
});
const policies = compiled(aSchedule(), EXTRA, TRIAL);

interface Write {
  atMs: number;
  fields: Partial<ComputeSettings>;
  disconnects: boolean;
}

/** By day mostly awake, by night half of the time, for some hours at a time. */
function awakeHours(seed: number): (ms: number) => boolean {
  const random = seededRandom(seed);
  let awake = false;
  const hours = Array.from({ length: 30 * 24 }, (_, hour) => {
    const day = hour % 24 >= 7 && hour % 24 < 20;
    if (random() < 0.4) awake = random() < (day ? 0.85 : 0.6);
    return awake;
  });
  return (ms) => hours[Math.floor((ms - FROM) / HOUR)] === true;
}

/** Goes through the rotation; `meddle` may change the compute by hand. */
function goThrough(projectId: string, meddle?: (compute: Compute, nowMs: number) => void) {
  const isAwake = awakeHours(projectId.length * 1000 + Number(projectId.slice(2)));
  const compute = aCompute({ projectId, ...NIGHT });
  const records: ComputeRecord[] = [];
  let record = aRecord({ baseline: BASELINE, firstSeenAtMs: FROM - DAY, lastApplied: settingsOf(compute) });
  const writes: Write[] = [];
  let heldFlips = 0;
  for (let nowMs = FROM; nowMs < UNTIL + 8 * HOUR; ) {
    compute.state = isAwake(nowMs) ? 'active' : 'idle';
    meddle?.(compute, nowMs);
    record = withTrials(policies, compute, record, nowMs);
    const situation = { policies, compute, record, nowMs, mode: 'enforce' as const, projectBusy: false };
    record = detectManualChanges(record, compute, { nowMs, readAtMs: nowMs }, (group) => isReverted(situation, group));
    const { decision, plan } = evaluateNow({ ...situation, record });
    if (gatesOf(plan).includes('trial_flip')) heldFlips += 1;
    const input = { policies, compute, baseline: record.baseline, trials: record.trials };
    record = withWanted({ ...input, decision, record: withAgreed(record, compute, decision) });
    for (const { fields, disconnects } of plan.verdict === 'act' ? plan.actions : []) {
      writes.push({ atMs: nowMs, fields, disconnects });
      Object.assign(compute, fields);
      record = { ...record, lastApplied: { ...record.lastApplied, ...fields } };
      if (disconnects) record = { ...record, lastDisruption: { atMs: nowMs, lowered: true } };
    }
    records.push(record);
    const { boundaryMs = Number.POSITIVE_INFINITY } = searchBoundary(input, nowMs);
    nowMs = Math.min(boundaryMs, nowMs - (nowMs % HOUR) + HOUR);
  }
  return { compute, writes, records, heldFlips };
}

/** One project for each place of the rotation. */
const PROJECTS = [0, 1, 2, 3].map((slot) => {
  const index = Array.from({ length: 100 }, (_, at) => at).find((at) => drawOf(TRIAL.design, `p-${at}`).slot === slot);
  return `p-${index}`;
});

describe('a rotation of a trial', () => {
  it.each(PROJECTS)(
    'writes to %s what the forecast named for that instant, and restarts nothing for the trial',
    (projectId) => {
      const { compute, writes, records } = goThrough(projectId);
      const subject = { compute: aCompute({ projectId, ...NIGHT }), baseline: BASELINE };
      const { segments } = forecast({ policies, ...subject, fromMs: FROM, toMs: UNTIL + DAY });
      expect(writes.length).toBeGreaterThan(30);
      for (const { atMs, fields, disconnects } of writes) {
        const named = segments.find(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
        expect(settingsOf({ ...compute, ...named })).toMatchObject(fields);
        if (!disconnects) continue;
        // The size would have been changed without the trial as well, at most as long ago as a lowering may wait.
        const input = { policies, compute, baseline: BASELINE, arm: 'treated' as const };
        expect(lastBoundary(input, atMs, 'size')).toBeGreaterThanOrEqual(atMs - DEADLINE - HOUR);
      }
      expect(writes.some(({ fields }) => fields.suspendTimeoutSeconds === -1)).toBe(true);
      expect(records.some(({ manual, reversals }) => manual !== undefined || reversals !== undefined)).toBe(false);
    },
  );

  it('holds back sizes of computes that are awake when they flip', () => {
    expect(PROJECTS.map((projectId) => goThrough(projectId).heldFlips > 0)).toContain(true);
  });

  it('leaves what a person has set in the control group, and then goes on', () => {
    const [projectId = ''] = PROJECTS;
    const setAtMs = FROM + 2 * DAY + 9 * HOUR;
    const { writes, records } = goThrough(projectId, (compute, nowMs) => {
      if (nowMs === setAtMs) Object.assign(compute, { minCu: 8, maxCu: 8 });
    });
    const sizes = writes.filter(({ fields, atMs }) => fields.maxCu !== undefined && atMs >= setAtMs);
    // The period of the first place is the first; its end comes with the delay of the unit.
    const { flipDelayMs } = drawOf(TRIAL.design, projectId);
    expect(sizes[0]?.atMs).toBeGreaterThanOrEqual(FROM + 7 * DAY + flipDelayMs);
    expect(sizes[0]?.atMs).toBeLessThan(FROM + 9 * DAY);
    expect(records.at(-1)?.reversals).toBeUndefined();
  });
});
