import { describe, expect, it } from 'vitest';
import { outboxEntries } from '../../src/app/notifications/notify.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { describeStatus } from '../../src/cli/status.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import { REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const receiver = (name: string): Receiver => ({
  ...{ name, to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], url: { from: 'text', text: 'http://127.0.0.1/' } },
});

/** Two messages for each of two receivers, of which those of `ops` are dead. */
async function queued() {
  const store = createMemoryStore(createSteppedClock(0, () => false));
  const about = (id: string) => ({ id, kind: 'freeze' as const, atMs: 1_000, text: `text of ${id}` });
  await store.appendOutbox(outboxEntries({ receivers: [receiver('ops'), receiver('web')] }, [about('a'), about('b')]));
  for (const id of ['a>ops', 'b>ops']) await store.updateOutbox(id, { state: 'dead', tries: 3, error: 'answered 404' });
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => 5_000, requestReconciles: async () => {} },
    caller: { who: 'ann@laptop', requestId: 'r-1' },
  });
  const idsOf = async (name: string, state: 'waiting' | 'dead') =>
    (await store.outbox({ receiver: name, state, limit: 9 })).map(({ id }) => id);
  const auditLines = async () =>
    (await store.history({ limit: 9 })).map(({ kind, who, verified, requestId, reasons }) => ({
      ...{ kind, who, verified, requestId, message: reasons[0]?.message },
    }));
  return { operator, idsOf, auditLines };
}

describe('what people see of notifications, and do with those that are dead', () => {
  it('shows what waits and what is dead, with why', async () => {
    const { operator } = await queued();
    const found = await operator.notifications();
    expect(found).toMatchObject({
      ok: true,
      value: {
        lost: 0,
        receivers: [
          { receiver: 'ops', waiting: 0, dead: 2, oldest_at: null },
          { receiver: 'web', waiting: 2, dead: 0, oldest_at: '1970-01-01T00:00:01Z' },
        ],
      },
    });
    expect(found.ok && found.value.notifications[0]).toEqual({
      ...{ id: 'a>ops', receiver: 'ops', state: 'dead', tries: 3, error: 'answered 404' },
      ...{ at: '1970-01-01T00:00:01Z', text: 'text of a' },
    });
  });

  it('says in the status how many could not be sent, and what to do', async () => {
    const { operator } = await queued();
    const found = await operator.status();
    if (!found.ok) throw new Error(found.error.message);
    expect(found.value.dead_notifications).toEqual([{ receiver: 'ops', count: 2 }]);
    const lines = describeStatus(found.value).filter((line) => line.startsWith('notifications:'));
    expect(lines).toEqual([
      'notifications: 2 could not be sent, to ops: ebb notify list says why, then ebb notify retry or drop RECEIVER',
    ]);
    await operator.retryOrDropNotifications({ action: 'drop', target: 'ops' });
    const after = await operator.status();
    expect(after).toMatchObject({ ok: true, value: { dead_notifications: [] } });
    expect(after.ok && describeStatus(after.value).join('\n')).not.toContain('notifications');
  });

  it('sends the dead ones of a receiver again, or one of them', async () => {
    const all = await queued();
    const done = await all.operator.retryOrDropNotifications({ action: 'retry', target: 'ops' });
    expect(done).toEqual({ ok: true, value: { ids: ['a>ops', 'b>ops'] } });
    expect([await all.idsOf('ops', 'waiting'), await all.idsOf('ops', 'dead')]).toEqual([['a>ops', 'b>ops'], []]);
    const one = await queued();
    await one.operator.retryOrDropNotifications({ action: 'retry', target: 'b>ops' });
    expect(await one.idsOf('ops', 'waiting')).toEqual(['b>ops']);
  });

  it('drops the dead ones of a receiver, or one that waits, and says where there is none', async () => {
    const { operator, idsOf } = await queued();
    expect(await operator.retryOrDropNotifications({ action: 'drop', target: 'ops' })).toMatchObject({ ok: true });
    expect(await operator.retryOrDropNotifications({ action: 'drop', target: 'a>web' })).toMatchObject({ ok: true });
    expect([await idsOf('ops', 'dead'), await idsOf('web', 'waiting')]).toEqual([[], ['b>web']]);
    expect(await operator.retryOrDropNotifications({ action: 'drop', target: 'web' })).toMatchObject({
      ok: false,
      error: { code: 'not_found' },
    });
    expect(await idsOf('web', 'waiting')).toEqual(['b>web']);
  });

  it('leaves a line in the audit for each command that does something: who, and what', async () => {
    const { operator, auditLines } = await queued();
    await operator.retryOrDropNotifications({ action: 'retry', target: 'ops' });
    await operator.retryOrDropNotifications({ action: 'drop', target: 'nobody' });
    await operator.retryOrDropNotifications({ action: 'drop', target: 'z>ops' });
    const bob = { who: 'bob', verified: true, requestId: 'r-2' } as const;
    await operator.retryOrDropNotifications({ action: 'drop', target: 'a>web' }, bob);
    expect(await auditLines()).toEqual([
      { kind: 'notification', ...bob, message: 'dropped: a notification, a>web' },
      { kind: 'notification', who: 'ann@laptop', requestId: 'r-1', message: 'sent again: 2 notifications, ops' },
    ]);
  });
});
