import { expect, it, onTestFinished } from 'vitest';
import { compileRules } from '../../src/app/rules.ts';
import { compiled } from '../support/builders.ts';
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
  expect(asked).toMatchObject({ ok: true, value: { computes: [{ compute_id: 'ep-shop', outcome: 'requested' }] } });
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
