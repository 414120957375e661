import { expect, it } from 'vitest';
import { recordAfter } from '../../src/app/apply/record-update.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { ControlApiErrorCode } from '../../src/ports/control-api.ts';
import { aRecord } from '../support/builders.ts';

const fields = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 600 };
const action = { kind: 'update', fields, policy: 'p', disconnects: false, raises: true } as unknown as Action;

/** What is remembered after refusals of size and timeout together. */
function after(code: ControlApiErrorCode, status: number, times = 1): ComputeRecord {
  const answer = { ok: false, error: { code, status, route: 'PATCH /x', message: 'no' } } as const;
  let record = aRecord();
  for (let at = 0; at < times; at += 1) record = recordAfter(record, action, answer, at);
  return record;
}

it('a compute that is not ready yet has its change tried again as it is, and is degraded after the third time', () => {
  expect(after('not_ready', 422)).toMatchObject({ failures: { size: { count: 1, message: '422: no' } } });
  expect(after('not_ready', 422)).not.toHaveProperty('oneFieldGroupAtATime');
  expect(after('not_ready', 422, 3)).toMatchObject({ failures: { size: { count: 3 } } });
});

it('other refusals of both may be of one of them, so each is sent by itself from then on', () => {
  expect(after('invalid', 400)).toMatchObject({ oneFieldGroupAtATime: true });
  expect(after('invalid', 400)).not.toHaveProperty('failures');
});
