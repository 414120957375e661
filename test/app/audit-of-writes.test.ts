import { expect, it } from 'vitest';
import { auditOfConfirmed, auditOfWrite } from '../../src/app/apply/audit.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import { tookEffect } from '../../src/domain/records/history.ts';
import { aCompute, aRecord, aSchedule, compiled } from '../support/builders.ts';

const compute = aCompute();
const action = {
  ...{ kind: 'update' as const, fields: { maxCu: 4 }, disconnects: true, raises: true },
  ...{ policy: 'office-hours', priority: 0 },
};
const why = [{ code: 'window_open' as const, message: 'size 2 → 4 CU' }];
const evaluatedCompute = { compute, plan: { why } } as unknown as EvaluatedCompute;
const policies = compiled({ ...aSchedule(), owner: 'team-web' });
const current = { policies, revision: 'commit-1', costs: { owners: [] } };
const deps = { rules: { current }, fleet: { cachedProject: () => undefined } } as unknown as Parameters<
  typeof auditOfWrite
>[0];
const usual = {
  ...{ kind: 'write', policy: 'office-hours', owner: 'team-web', requestId: 'r-1', atMs: 7 },
  ...{ setHash: policies.set.hash, revision: 'commit-1', from: { maxCu: 2 }, to: { maxCu: 4 } },
};

it('has of a write what was, what came, why, whose compute, and what became of it', () => {
  const write = { evaluatedCompute, action, requestId: 'r-1', atMs: 7, error: undefined };
  expect(auditOfWrite(deps, { ...write, outcome: 'applied' })).toMatchObject({ ...usual, reasons: why });
  const dropped = { code: 'clients_disconnected', message: 'its clients were disconnected (7 when last counted)' };
  const sent = { intent: { fields: { maxCu: 4 }, atMs: 7, dropped: 7 } };
  expect(auditOfWrite(deps, { ...write, outcome: 'applied' }, sent).reasons).toEqual([...why, dropped]);
  expect(auditOfWrite(deps, { ...write, outcome: 'locked' }, sent)).toMatchObject({
    ...usual,
    reasons: [...why, { code: 'locked', message: 'not changed: locked' }],
  });
  const unanswered = auditOfWrite(deps, { ...write, outcome: 'unknown' });
  expect(unanswered.reasons.at(-1)?.message).toBe('no answer came, so it may have been changed');
  expect(tookEffect(unanswered)).toBe(false);
  // A 500 is an answer.
  const error = { code: 'unavailable', status: 500, route: 'PATCH', message: 'internal error' } as const;
  const answered = auditOfWrite(deps, { ...write, outcome: 'unknown', error });
  const open = 'the answer does not say whether it was changed: internal error';
  expect(answered.reasons.at(-1)?.message).toBe(open);
  expect(tookEffect(answered)).toBe(false);
  // As earlier versions wrote it.
  expect(tookEffect({ reasons: [{ code: 'unknown', message: 'not changed: unknown: internal error' }] })).toBe(false);
});

it('names who has commanded it', () => {
  const caller = { who: 'ann@laptop', requestId: 'command' };
  const write = { evaluatedCompute, action, requestId: 'r-1', atMs: 7, error: undefined, outcome: 'applied' as const };
  expect(auditOfWrite({ ...deps, caller }, write)).toMatchObject({ ...usual, who: 'ann@laptop' });
});

it('has of a write without an answer whether it took effect, once that is known', () => {
  const intent = { fields: { maxCu: 4 }, atMs: 1, policy: 'office-hours', requestId: 'r-1' };
  const before = { ...aRecord(), intent };
  const of = (maxCu: number, after = aRecord(), dropped = 0) =>
    auditOfConfirmed(deps, aCompute({ maxCu }), {
      before: { ...before, intent: { ...intent, dropped } },
      after,
      nowMs: 7,
    });
  expect(of(4)).toMatchObject({
    ...{ kind: 'write', requestId: 'r-1', to: { maxCu: 4 } },
    reasons: [{ message: 'no clear answer came, and it took effect' }],
  });
  expect(of(2)?.reasons[0]?.message).toBe('no clear answer came, and it did not take effect');
  expect(of(4, before)).toBeUndefined();
  const codes = (maxCu: number) => of(maxCu, aRecord(), 7)?.reasons.map(({ code }) => code);
  expect(codes(4)).toEqual(['clients_disconnected', 'confirmed']);
  expect(codes(2)).toEqual(['confirmed']);
});
