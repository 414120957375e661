import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { outboxEntries } from '../../src/app/notifications/notify.ts';
import type { MessageDocument, Receiver } from '../../src/domain/notifications/notification.ts';
import { memoryLog } from '../support/memory-log.ts';
import { type Answer, isFirst, receiving, takes } from '../support/receiving.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, hourIn, sizedAt, startFaultCase } from './fault-case.ts';

/** How each receiver misbehaves; in the end all but one take everything. */
const MANNERS: Readonly<Record<string, Answer>> = {
  slow: (response) => void setTimeout(() => takes(response), 2_500),
  failing: (response, count) => (count <= 4 ? void response.writeHead(500).end() : takes(response)),
  dying: (response, count) => (count % 3 === 0 ? void response.destroy() : takes(response)),
  hanging: () => {},
};
const RELIABLE = ['slow', 'failing', 'dying'];

const COMPUTES = ['shop', 'blog', 'docs'];
/** Of each compute, as others queued them before. */
const EARLIER = 8;

describeWith('redis-server', 'notifications while daemons are killed and receivers misbehave', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(() => redis.close());

  /** What waits already when the daemon starts. */
  async function queueEarlier(group: string): Promise<void> {
    const opened = await openEngine({ url: redis.url, group, log: memoryLog() });
    if (!opened.ok) throw new Error(opened.error.message);
    const store = await createStore({ engine: opened.engine, log: memoryLog() });
    const receivers = Object.keys(MANNERS).map(
      (name): Receiver => ({
        ...{ name, to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], url: { from: 'text', text: '' } },
      }),
    );
    const earlier = Array.from({ length: EARLIER }, (_, at) =>
      COMPUTES.map((name) => ({
        ...{ id: `earlier:ep-${name}:${at}`, kind: 'degraded' as const, atMs: Date.now(), text: `number ${at}` },
        ...{ projectId: name, computeId: `ep-${name}` },
      })),
    ).flat();
    await store.appendOutbox(outboxEntries({ receivers }, earlier));
    await opened.engine.close();
  }

  it(
    'arrive all, in order for each compute, by one id each, and no change waits for them',
    async (test) => {
      const group = randomUUID();
      await queueEarlier(group);
      const receivers = new Map<string, Awaited<ReturnType<typeof receiving>>>();
      for (const [name, answer] of Object.entries(MANNERS)) receivers.set(name, await receiving(test, answer));
      const places = [...receivers].map(
        ([name, { url }]) => `  ${name}: { to: webhook, url: "${url}", secret_env: EBB_NOTIFY_SECRET }`,
      );
      const { startMs, at } = hourIn(30_000);
      const disruption = 'disruption: { raise: { when: any }, newly_discovered: act }\nnotify_before: 15m\n';
      const awake = { state: 'active', connections: 2 } as const;
      const at0 = await startFaultCase({
        ...{ redisPort: Number(new URL(redis.url).port), group, policies: sizedAt('2-4', at), test },
        computes: Object.fromEntries(COMPUTES.map((name) => [name, awake])),
        settings: `${disruption}notify:\n${places.join('\n')}\n`,
      });
      const more = { EBB_NOTIFY_SECRET: 'of-these-receivers' };
      const killed = await at0.start(undefined, more);
      const gotBy = (name: string) =>
        (receivers.get(name)?.got ?? []).map((one) => ({ ...one, ...(JSON.parse(one.body) as MessageDocument) }));
      /** The only announcement: of the one owner, for the boundary. */
      const announced = (name: string) =>
        gotBy(name)
          .filter(isFirst)
          .filter(({ kind }) => kind === 'change_coming');

      await eventually(() => expect([gotBy('hanging').length, gotBy('slow').length]).not.toContain(0));
      // Every change is made at the boundary, though one receiver has answered nothing at all.
      await eventually(async () => expect((await at0.appliedMaxima()).length).toBe(COMPUTES.length));
      const writes = await at0.platform.writes();
      const latenessMs = writes.map((write) => Date.parse(write.at) - startMs);
      process.stdout.write(`while a receiver hangs, writes came ${latenessMs.join(', ')} ms after the boundary\n`);

      // Killed in the middle: its leases must end before the next daemon goes on.
      await killed.kill('SIGKILL');
      await at0.start(undefined, more);
      const all = COMPUTES.flatMap((name) =>
        Array.from({ length: EARLIER }, (_, number) => `earlier:ep-${name}:${number}`),
      );
      await eventually(() => {
        for (const name of RELIABLE) {
          expect(gotBy(name).map(({ id }) => id)).toEqual(expect.arrayContaining(all));
          expect(announced(name)).toHaveLength(1);
        }
      });
      for (const name of RELIABLE) {
        const got = gotBy(name);
        const once = got.filter(isFirst);
        expect(announced(name)).toMatchObject([
          {
            id: expect.stringContaining(`change_coming:unowned:${startMs}:`),
            changes: { computes: COMPUTES.length, disconnecting: COMPUTES.length },
          },
        ]);
        for (const compute of COMPUTES.map((one) => `ep-${one}`)) {
          const ids = once.filter((one) => one.compute === compute).map(({ id }) => id);
          const inOrder = Array.from({ length: EARLIER }, (_, number) => `earlier:${compute}:${number}`);
          expect(ids).toEqual(inOrder);
        }
        for (const { id, headers, body } of got)
          expect([headers['webhook-id'], body]).toEqual([id, got.find((one) => one.id === id)?.body]);
        process.stdout.write(`${name}: ${once.length} messages, ${got.length - once.length} came twice\n`);
      }
      await at0.expectNothingForbidden();
    },
    CASE_MS,
  );
});
