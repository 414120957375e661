import { expect, it } from 'vitest';
import { CASE_MS, eventually, hourIn, NEVER, startFaultCase } from '../fault/fault-case.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const OF_EACH = 60;

/** Writes begin in order, but 16 are decided at once: one that needs a millisecond longer is overtaken by a few. */
const MAX_OVERTAKEN_BY = 8;

/** Who is called up-* is raised at this time, by two priorities, and down-* lowered. */
function upAndDown(at: string): string {
  const schedule = (name: string, size: string, priority: number) =>
    `  - { name: ${name}, kind: schedule, priority: ${priority}, select: { projects: ["${name}-*"], min_age: 1m }, windows: [{ at: ${at}, size: ${size} }], otherwise: leave }`;
  const policies = [schedule('down', '0.25', 900), schedule('up', '1-2', 100), schedule('urgent', '1-2', 800)];
  return ['version: 1', 'policies:', ...policies, ''].join('\n');
}

describeWith('redis-server', 'at a boundary', () => {
  it('raises are sent before lowerings, and those of the higher priority first', { timeout: CASE_MS }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const kinds = ['down', 'up', 'urgent'];
    const names = Array.from({ length: OF_EACH }, (_, index) => kinds.map((kind) => `${kind}-${index}`)).flat();
    const at = await startFaultCase({
      ...{ redisPort: redis.port, test, policies: upAndDown(NEVER) },
      computes: Object.fromEntries(names.map((name) => [name, { minCu: 0.5, maxCu: 0.5 }])),
      settings: 'api_requests_per_minute: 20000\nlog_level: debug\n',
    });
    const daemon = await at.start();
    await eventually(async () => expect((await at.records()).size).toBeGreaterThanOrEqual(names.length));
    const { at: hour } = hourIn(20_000);
    await at.writePolicies(upAndDown(hour));
    const sent = () => daemon.logs().filter(({ event, phase }) => event === 'ebb.write' && phase === 'before');
    await eventually(() => expect(sent()).toHaveLength(names.length));
    const places = sent().map(({ compute }) => ['urgent', 'up', 'down'].indexOf(String(compute).split('-')[1] ?? ''));
    expect(places.toSorted()).toEqual([0, 1, 2].flatMap((place) => new Array(OF_EACH).fill(place)));
    const overtakenBy = places.map((place, index) => places.slice(0, index).filter((other) => other > place).length);
    expect(Math.max(...overtakenBy)).toBeLessThanOrEqual(MAX_OVERTAKEN_BY);
  });
});
