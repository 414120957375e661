import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordAfter } from '../../src/app/apply/record-update.ts';
import { type Compute, settingsOf } from '../../src/domain/compute/compute.ts';
import { evaluateNow } from '../../src/domain/evaluate/evaluate.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import { withAgreed } from '../../src/domain/plan/manual-changes.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { confirmWrite } from '../../src/domain/records/failures.ts';
import { aCompute, aRecord, aSchedule, at, compiled, planFor } from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const SECOND = 1_000;
const size = (cu: number) => ({ minCu: cu, maxCu: cu });
const WANTS_4 = compiled(aSchedule({ windows: [], otherwise: { size: size(4) } }));

/** The record after a PATCH that was answered at noon, and that the control API dates at noon too. */
function patched(from: number, to: number, record = aRecord({ lastApplied: size(from) })): ComputeRecord {
  const action: Action = {
    kind: 'update',
    fields: size(to),
    disconnects: false,
    raises: to > from,
    policy: 'office',
    priority: 0,
  };
  const before = settingsOf(aCompute(size(from)));
  const intended = { ...record, intent: { fields: size(to), before, atMs: NOON - SECOND } };
  const settings = settingsOf(aCompute(size(to)));
  const value = { settings, state: 'idle' as const, updatedAtMs: NOON, operations: [] };
  return recordAfter(intended, action, { ok: true, value }, NOON);
}

/** What becomes of a record by a reading at the instant. */
function seeing(record: ComputeRecord, compute: Compute, readAtMs: number, nowMs = readAtMs): ComputeRecord {
  return updatedRecord(record, compute, { policies: WANTS_4, nowMs, readAtMs, holds: [] });
}

describe('a reading that shows what was before the last change', () => {
  const record = patched(1, 4);
  const old = aCompute({ ...size(1), state: 'idle' });

  it('is no change by a person within 60 s of the answer, and nothing is written because of it', () => {
    const after = seeing(record, old, NOON + 59_999);
    expect(after).not.toHaveProperty('manual');
    expect(after.baseline).toBe(record.baseline);
    const plan = planFor({ policies: WANTS_4, compute: old, record: after, nowMs: NOON + 59_999 });
    expect(plan).toMatchObject({ verdict: 'wait', heldBy: ['reading_lags'], untilMs: NOON + 69_999 });
    expect(plan.reasons.at(-1)?.message).toBe(
      "the control API still shows the values from before ebb's change at 2026-03-02T12:00:00Z; it is read again",
    );
  });

  it('lags too while a failure from before that change is remembered, but not after a later one', () => {
    const failed = (lastAtMs: number) => ({
      ...record,
      failures: { size: { count: 1, lastAtMs, desired: size(4), message: 'no answer came' } },
    });
    expect(seeing(failed(NOON - 20 * SECOND), old, NOON + 5_000).lagging).toEqual({ size: true });
    expect(seeing(failed(NOON + SECOND), old, NOON + 5_000)).not.toHaveProperty('lagging');
  });

  it('does not confirm a change back to those values that got no answer', () => {
    const back = { ...record, intent: { fields: size(1), before: settingsOf(aCompute(size(4))), atMs: NOON + 5_000 } };
    expect(confirmWrite(back, old, NOON + 30_000)).toBe(back);
    expect(confirmWrite(back, old, NOON + 60_000).lastApplied).toEqual(size(1));
  });

  it('is one once the 60 s are over, also where a person has set it within them', () => {
    const lagging = seeing(record, old, NOON + 50_000);
    expect(seeing(lagging, old, NOON + 59_999, NOON + 70_000)).toBe(lagging);
    const after = seeing(lagging, { ...old, updatedAtMs: NOON + 20_000 }, NOON + 60_000);
    expect(after.manual?.size?.fields).toEqual(size(1));
    expect(after).not.toHaveProperty('lagging');
  });

  it('is none as long as the control API dates it before its answer', () => {
    const dated = { ...old, updatedAtMs: NOON - SECOND };
    const after = seeing(record, dated, NOON + 10 * 60_000);
    expect(after).not.toHaveProperty('manual');
    expect(after.lagging).toMatchObject({ size: true });
    const hourLater = seeing(record, dated, NOON + 60 * 60_000);
    expect(hourLater.manual?.size?.fields).toEqual(size(1));
  });

  it('lags also where nothing was known of the answer but what a reading showed', () => {
    const intent = { fields: size(4), before: settingsOf(old), atMs: NOON - SECOND };
    const confirmed = confirmWrite(aRecord({ lastApplied: size(1), intent }), aCompute(size(4)), NOON);
    expect(seeing(confirmed, old, NOON + 5_000).lagging).toEqual({ size: true });
  });

  it('agrees with no policy', () => {
    const after = seeing(record, old, NOON + 5_000);
    const wantsOld = compiled(aSchedule({ windows: [], otherwise: { size: size(1) } }));
    expect(updatedRecord(after, old, { policies: wantsOld, nowMs: NOON + 5_000, holds: [] }).lastApplied).toEqual(
      size(4),
    );
  });

  it('does not end a request for the baseline', () => {
    const restore = { owner: 'ann', askedAtMs: NOON, expiresAtMs: NOON + 60_000 };
    const asked = { ...record, baseline: settingsOf(old), restore };
    expect(seeing(asked, old, NOON + 5_000).restore).toEqual({ ...restore, fields: ['size'] });
  });

  it('is no lag after a change that failed: its settings were undone', () => {
    const failures = { size: { count: 1, lastAtMs: NOON, desired: size(4), message: 'apply_config failed' } };
    expect(seeing({ ...record, failures }, old, NOON + 30_000)).not.toHaveProperty('lagging');
  });

  it('holds only the field that it is about', () => {
    const both = compiled(aSchedule({ windows: [], otherwise: { size: size(4), suspendTimeoutSeconds: 60 } }));
    const after = seeing(record, old, NOON + 5_000);
    expect(planFor({ policies: both, compute: old, record: after, nowMs: NOON + 5_000 })).toMatchObject({
      actions: [{ fields: { suspendTimeoutSeconds: 60 } }],
      heldBy: ['reading_lags'],
    });
  });
});

it('a reading older than the one that showed a change by a person does not end it', () => {
  const record = aRecord({ lastApplied: size(4) });
  const set = aCompute({ ...size(8), updatedAtMs: NOON });
  const noticed = seeing(record, set, NOON + SECOND);
  const late = seeing(noticed, aCompute({ ...size(4), updatedAtMs: NOON - SECOND }), NOON + 2 * SECOND);
  expect(late.manual).toEqual(noticed.manual);
  expect(seeing(late, set, NOON + 31 * SECOND).baseline).toMatchObject(size(8));
});

/** What the platform had from an instant on, and who made it so. */
interface State {
  compute: Compute;
  by: 'nobody' | 'ebb' | 'person';
  /** A reading has shown it. */
  isShown: boolean;
}

type Step =
  | { kind: 'want'; cu: number; passMs: number }
  | { kind: 'person'; cu: number | 'as before'; passMs: number }
  | { kind: 'read'; back: number; passMs: number };

/** A person sets back what ebb has changed, a reading shows that, and one from before comes later. */
const LATE_READING: Step[] = [
  { kind: 'want', cu: 1, passMs: SECOND },
  { kind: 'read', back: 0, passMs: SECOND },
  { kind: 'person', cu: 'as before', passMs: SECOND },
  { kind: 'want', cu: 8, passMs: SECOND },
  { kind: 'read', back: 0, passMs: SECOND },
  { kind: 'read', back: 1, passMs: SECOND },
];

/** A person sets the same value twice, with the old one between, and only a late reading shows that one. */
const MADE_TWICE: Step[] = [
  { kind: 'person', cu: 3, passMs: SECOND },
  { kind: 'person', cu: 'as before', passMs: SECOND },
  { kind: 'read', back: 1, passMs: SECOND },
  { kind: 'person', cu: 3, passMs: SECOND },
  { kind: 'read', back: 0, passMs: SECOND },
  { kind: 'want', cu: 1, passMs: SECOND },
  { kind: 'read', back: 1, passMs: SECOND },
];

/** ebb and people change a compute, and readings show any of its last states, in any order and as often as they like. */
function simulate(steps: readonly Step[]) {
  let nowMs = NOON;
  let policies = compiled(aSchedule({ windows: [], otherwise: { size: size(2) } }));
  const first = aCompute({ ...size(2), state: 'idle', updatedAtMs: nowMs });
  const states: State[] = [{ compute: first, by: 'nobody', isShown: true }];
  const byPeople = new Set([2]);
  let record = aRecord({ baseline: settingsOf(first), lastApplied: settingsOf(first) });
  const newest = () => states.at(-1) as State;
  const become = (by: State['by'], fields: Partial<Compute>) =>
    states.push({ by, isShown: false, compute: { ...newest().compute, ...fields, updatedAtMs: nowMs } });

  function send(action: Action): void {
    const { by, isShown, compute } = newest();
    // A change that no reading has shown yet can't be respected.
    expect([by, isShown]).not.toEqual(['person', true]);
    become('ebb', action.fields);
    const settings = settingsOf(newest().compute);
    const value = { settings, state: 'idle' as const, updatedAtMs: nowMs, operations: [] };
    const intent = { fields: action.fields, before: settingsOf(compute), atMs: nowMs };
    record = recordAfter({ ...record, intent }, action, { ok: true, value }, nowMs);
  }

  function read(back: number): void {
    const seen = states.at(-1 - back) ?? newest();
    const { compute } = seen;
    record = updatedRecord(record, compute, { policies, nowMs, readAtMs: nowMs, holds: [] });
    const situation = { policies, compute, record, nowMs, mode: 'enforce' as const, projectBusy: false };
    const { decision, plan } = evaluateNow(situation);
    seen.isShown = true;
    record = withAgreed(record, compute, decision);
    // What a policy agrees with is ebb's own.
    if (record.lastApplied.maxCu === newest().compute.maxCu) newest().by = 'ebb';
    if (plan.verdict === 'act' && plan.actions[0]) send(plan.actions[0]);
  }

  function byPerson(wanted: number | 'as before'): void {
    const cu = wanted === 'as before' ? (states.at(-2) ?? newest()).compute.maxCu : wanted;
    byPeople.add(cu);
    become(cu === record.lastApplied.maxCu ? 'ebb' : 'person', size(cu));
  }

  for (const step of steps) {
    nowMs += step.passMs;
    if (step.kind === 'want') policies = compiled(aSchedule({ windows: [], otherwise: { size: size(step.cu) } }));
    else if (step.kind === 'person') byPerson(step.cu);
    else read(step.back);
    expect(byPeople).toContain(record.baseline.maxCu);
  }
  for (let times = 0; times < 5; times += 1) {
    nowMs += 30 * SECOND;
    read(0);
  }
  return { newest: newest(), record };
}

describe('over changes of ebb and of people, with readings that lag, come twice or out of order', () => {
  const passMs = fc.integer({ min: SECOND, max: 25 * SECOND });
  const steps: fc.Arbitrary<Step[]> = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('want' as const), cu: fc.constantFrom(1, 4, 8), passMs }),
      fc.record({ kind: fc.constant('person' as const), cu: fc.constantFrom(3, 5, 'as before' as const), passMs }),
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('read' as const), back: fc.constantFrom(0, 0, 1, 2), passMs }),
      },
    ),
    { maxLength: 30 },
  );

  it('only a person changes the baseline, and no change of a person that was shown is written over or lost', () => {
    fc.assert(
      fc.property(steps, (given) => {
        const { newest, record } = simulate(given);
        expect(record).not.toHaveProperty('lagging');
        if (newest.by !== 'person') return;
        expect(record.manual?.size?.fields).toEqual(size(newest.compute.maxCu));
        expect(record.baseline.maxCu).toBe(newest.compute.maxCu);
      }),
      { examples: [[LATE_READING], [MADE_TWICE]] },
    );
  });
});
