import { Writable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { compileRules } from '../../src/app/rules.ts';
import { aSchedule, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MINUTE_MS = 60_000;
const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const POLICIES = `version: 1
policies:
  - name: small
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: 0.5 }]
    otherwise: leave
`;

it('a restore that policies stand against is dropped: disabled later, they bring nothing back', async () => {
  const computes = { shop: { minCu: 2, maxCu: 2 } };
  const daemon = await startSimulatedDaemon({ fromMs: EIGHT, policies: POLICIES, computes });
  onTestFinished(() => daemon.close());
  const { clock, platform, operator, rules } = daemon;
  const sizes = async () =>
    (await platform.writes()).map(({ body }) => {
      const { endpoint } = body as { endpoint: { autoscaling_limit_max_cu?: number } };
      return endpoint.autoscaling_limit_max_cu;
    });
  await clock.runTo(EIGHT + 10 * MINUTE_MS);
  expect(await sizes()).toEqual([0.5]);
  const asked = await operator.restore({ computes: 'all', owner: 'ann', now: true });
  expect(asked).toMatchObject({
    ok: true,
    value: { computes: [{ compute_id: 'ep-shop', outcome: 'policies_decide' }] },
  });
  await clock.runTo(EIGHT + 20 * MINUTE_MS);
  const { policies, ...settings } = rules.current;
  rules.current = compileRules({ ...settings, policies: compiled().set }, rules.current);
  await clock.runTo(EIGHT + 3 * 60 * MINUTE_MS);
  expect(await sizes()).toEqual([0.5]);
  await operator.restore({ computes: 'all', owner: 'ann', now: true });
  await clock.runTo(EIGHT + 4 * 60 * MINUTE_MS);
  expect(await sizes()).toEqual([0.5, 2]);
  expect(policies.set.policies).toHaveLength(1);
});

it.each(['enforce', 'observe'] as const)(
  'what policies come to decide later is dropped and logged, in mode %s',
  async (mode) => {
    const lines: string[] = [];
    const log = new Writable({
      write(chunk, _encoding, done) {
        lines.push(...String(chunk).trim().split('\n'));
        done();
      },
    });
    const computes = { shop: { minCu: 2, maxCu: 2, state: 'active' as const, connections: 3 } };
    const policies = POLICIES.replace('size: 0.5', 'suspend_after: 10m');
    const daemon = await startSimulatedDaemon({ fromMs: EIGHT, policies, computes, log, mode });
    onTestFinished(() => daemon.close());
    const { clock, operator, rules, record } = daemon;
    await clock.runTo(EIGHT + 10 * MINUTE_MS);
    const baselines = [{ compute_id: 'ep-shop', min_cu: 0.5, max_cu: 1, suspend_timeout_seconds: 300 }];
    await operator.restore({ computes: ['ep-shop'], baselines, owner: 'ann', now: false });
    await clock.runTo(EIGHT + 20 * MINUTE_MS);
    expect((await record('shop', 'ep-shop'))?.restore?.fields).toEqual(['size']);
    const select = aSelector({ projects: ['*'] });
    const { set } = compiled(aSchedule({ name: 'small', select, otherwise: { size: { minCu: 2, maxCu: 2 } } }));
    rules.current = compileRules({ ...rules.current, policies: set }, rules.current);
    await daemon.reconcile('shop');
    await clock.runTo(EIGHT + 30 * MINUTE_MS);
    expect(await record('shop', 'ep-shop')).not.toHaveProperty('restore');
    const dropped = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'ebb.restore_dropped');
    expect(dropped.map(({ compute, owner, fields, msg }) => [compute, owner, fields, msg.split(': ')[1]])).toEqual([
      ['ep-shop', 'ann', ['size'], 'policy small sets its size'],
    ]);
  },
);
