import { describe, expect, it, onTestFinished } from 'vitest';
import { createSender, signatureOf } from '../../src/adapters/notifications/sender.ts';
import { type AuditExportDeps, startAuditExport } from '../../src/app/operator/audit-export.ts';
import { type AuditWebhookDeps, createAuditWebhook } from '../../src/app/operator/audit-webhook.ts';
import { decisionDocument } from '../../src/app/operator/documents.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import { destinationRefused } from '../../src/settings/notify-schema.ts';
import { at } from '../support/builders.ts';
import { type Answer, isFirst, receiving, takes } from '../support/receiving.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOON = at('2026-03-04T12:00:00Z');
const HOUR_MS = 3_600_000;
const SECRET = 'of-the-audit';

const entry = (id: string, atMs: number): HistoryEntry => ({
  ...{ id, atMs, projectId: 'p-one', computeId: 'ep-one', kind: 'freeze', setHash: 'abc', who: 'ann' },
  reasons: [{ code: 'freeze', message: 'migration' }],
});

const fails: Answer = (response) => void response.writeHead(500).end();
const dies: Answer = (response) => void response.destroy();
const hangs: Answer = () => {};

/** Daemons that export to a real receiver, on time that the test drives; `start` gives another one on the same store. */
async function exporting(answer: Answer = takes, timeoutMs = 10_000) {
  const { got, url } = await receiving({ onTestFinished }, (response, count) => world.answer(response, count));
  const world = { nowMs: NOON, leader: 'daemon-1', answer, failures: [] as unknown[] };
  const receiver: Receiver = {
    ...{ name: 'audit', to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], url: { from: 'text', text: url } },
    secret: { from: 'variable', name: 'EBB_NOTIFY_SECRET' },
  };
  const sender = createSender({
    ...{ readSecret: async () => SECRET, refusedDestination: destinationRefused, nowMs: () => world.nowMs, timeoutMs },
  });
  onTestFinished(() => sender.close());
  const store = createMemoryStore(createSteppedClock(NOON, () => false));
  const start = (name = 'daemon-1', more: Partial<AuditWebhookDeps['store']> = {}) => {
    let round = async () => {};
    const clock = {
      now: () => world.nowMs,
      monotonicMs: () => world.nowMs,
      every: (_: number, task: () => Promise<void>) => {
        round = task;
        return { close: async () => {} };
      },
    };
    const deps = {
      ...{ store, clock, fleet: { boundaryReconciles: new Map() } },
      runInBackground: async (_: string, task: () => Promise<void>) =>
        task().catch((error: unknown) => void world.failures.push(error)),
    } as unknown as AuditExportDeps;
    const leaderLease = { isHeld: () => world.leader === name };
    const to = createAuditWebhook({ store: { ...store, ...more }, sender, clock, leaderLease }, receiver);
    const running = startAuditExport(deps, { to, task: 'audit_webhook' });
    return { round: () => round(), close: () => running.close() };
  };
  const append = async (...ids: string[]) => {
    for (const [index, id] of ids.entries()) await store.appendHistory([entry(id, world.nowMs - ids.length + index)]);
  };
  return { got, world, store, start, append, ids: () => got.map(({ id }) => id) };
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `n-${String(index).padStart(3, '0')}`);

describe('the audit at a webhook', () => {
  it('has each line once, oldest first, signed, in the form of ebb audit --json, and no secret', async () => {
    const { got, world, start, append, ids } = await exporting();
    const daemon = start();
    await append('a', 'b');
    await daemon.round();
    await append('c');
    await daemon.round();
    await daemon.round();
    expect(ids()).toEqual(['a', 'b', 'c']);
    const [{ body = '', headers = {} } = {}] = got;
    expect(JSON.parse(body)).toEqual(decisionDocument(entry('a', NOON - 2)));
    expect(headers).toMatchObject(signatureOf(SECRET, { id: 'a', body, atMs: world.nowMs }));
    expect(JSON.stringify(got)).not.toContain(SECRET);
    expect(world.failures).toEqual([]);
  });

  it('loses and reorders nothing at a receiver that answers 500, dies and hangs, and leaves it alone in between', async () => {
    const misbehave: Answer = (response, count) => ([fails, dies, hangs][count % 4] ?? takes)(response, count);
    const { world, start, append, got } = await exporting(misbehave, 50);
    const daemon = start();
    await append(...numbered(12));
    for (let round = 0; round < 48; round += 1) {
      const before = { failures: world.failures.length, requests: got.length };
      await daemon.round();
      if (world.failures.length > before.failures) await daemon.round();
      expect(got.length - before.requests).toBeLessThanOrEqual(2);
      world.nowMs += 5 * 60_000;
    }
    expect(got.filter(isFirst).map(({ id }) => id)).toEqual(numbered(12));
    expect(new Set(world.failures.map(String))).toEqual(
      new Set(['answered 500', 'UND_ERR_SOCKET', 'no answer in time'].map((why) => `Error: the audit webhook: ${why}`)),
    );
    for (const failure of world.failures) expect(String(failure)).not.toMatch(/127\.0\.0\.1|of-the-audit/);
  });

  it('goes on after days in which the receiver was down, also with what was stored late', async () => {
    const { world, store, start, append, got, ids } = await exporting();
    const daemon = start();
    await append('a');
    await daemon.round();
    world.answer = fails;
    await store.appendHistory([entry('late', NOON - 20 * HOUR_MS)]);
    for (let day = 1; day <= 5; day += 1) {
      world.nowMs += 24 * HOUR_MS;
      await append(`day-${day}`);
      await daemon.round();
    }
    await daemon.close();
    const before = got.length;
    world.answer = takes;
    await start().round();
    expect(ids().slice(before)).toEqual(['late', 'day-1', 'day-2', 'day-3', 'day-4', 'day-5']);
  });

  it('has what was stored since it began, where the receiver was down from the start', async () => {
    const { world, start, append, got, ids } = await exporting(fails);
    const daemon = start();
    for (let hour = 0; hour < 40; hour += 1) {
      await append(`hour-${hour}`);
      await daemon.round();
      world.nowMs += HOUR_MS;
    }
    const before = got.length;
    world.answer = takes;
    await start().round();
    expect(ids().slice(before)).toEqual(Array.from({ length: 40 }, (_, hour) => `hour-${hour}`));
  });

  it('is sent again, by the same ids, from where a daemon was killed before it could note it', async () => {
    const { world, start, append, got, ids } = await exporting();
    await append(...numbered(50));
    const begun = start('daemon-1');
    world.answer = fails;
    await begun.round();
    got.length = 0;
    world.answer = takes;
    const killed = start('daemon-1', { replaceDocument: async () => Promise.reject(new Error('killed')) });
    await killed.round();
    expect(ids()).toEqual(numbered(20));
    const next = start();
    await next.round();
    expect(got.filter(isFirst).map(({ id }) => id)).toEqual(numbered(50));
    expect(got).toHaveLength(70);
    await start().round();
    expect(got).toHaveLength(70);
  });

  it('is sent by the leader only, which another daemon may become in the middle', async () => {
    const { world, start, append, got } = await exporting();
    const [one, two] = [start('daemon-1'), start('daemon-2')];
    await append(...numbered(10));
    world.answer = (response, count) => {
      if (count === 4) world.leader = 'daemon-2';
      takes(response);
    };
    await two.round();
    expect(got).toEqual([]);
    await one.round();
    expect(got).toHaveLength(4);
    await one.round();
    await two.round();
    world.leader = 'daemon-1';
    await append('last');
    await one.round();
    expect(got.map(({ id }) => id)).toEqual([...numbered(10), 'last']);
    expect(world.failures).toEqual([]);
  });

  it('does not keep a daemon from ending while the receiver never answers', async () => {
    let ask = () => {};
    const asked = new Promise<void>((resolve) => (ask = resolve));
    const { start, append, got, world } = await exporting(() => ask());
    const daemon = start();
    await append('a');
    const round = daemon.round();
    await asked;
    await daemon.close();
    await round;
    expect([got.length, world.failures]).toEqual([1, []]);
  });

  it('is complete, and sent once, after a clock that was far ahead is right again', async () => {
    const { world, start, append, ids } = await exporting();
    world.nowMs = NOON + 400 * 24 * HOUR_MS;
    const wrong = start();
    await wrong.round();
    await append('of-the-future');
    await wrong.round();
    world.nowMs = NOON;
    const right = start();
    await append('first', 'second');
    await right.round();
    await start().round();
    expect(ids()).toEqual(['of-the-future', 'first', 'second']);
    await append('while-stopped');
    world.nowMs += 5 * 24 * HOUR_MS;
    await start().round();
    expect(ids().at(-1)).toBe('while-stopped');
  });

  it('remembers what it has sent of two days', async () => {
    const { world, store, start, append } = await exporting();
    const daemon = start();
    for (let hour = 0; hour < 60; hour += 1) {
      await append(`hour-${hour}`);
      await daemon.round();
      world.nowMs += HOUR_MS;
    }
    expect((await store.documents('audit-webhook')).size).toBe(49);
  });
});
