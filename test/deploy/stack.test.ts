import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { boundarySoon } from '../support/platform.ts';
import type { PrometheusSample } from '../support/prometheus-server.ts';
import { replaceFile } from '../support/replace-file.ts';
import { describeWith } from '../support/requirements.ts';
import { type Stack, startStack } from './stack.ts';

const PATIENCE = { timeout: 80_000, interval: 500 };

describeWith('redis-server', 'what compose starts', () => {
  describeWith('prometheus', 'with Prometheus', () => {
    /** Of each test, since the last one breaks it. It has changed something already. */
    let stack: Stack;
    beforeEach(async () => {
      stack = await startStack();
      await expect
        .poll(() => samples('ebb_actions_total{outcome="applied"}'), { ...PATIENCE, message: stack.ebb.stderr() })
        .not.toEqual([]);
    });
    afterEach(() => stack?.close());

    const samples = async (expr: string) =>
      (await stack.ask<{ result: PrometheusSample[] }>(`query?query=${encodeURIComponent(expr)}`)).result;
    const firing = async () => {
      const { alerts } = await stack.ask<{ alerts: { state: string; labels: { alertname: string } }[] }>('alerts');
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
    };

    it('changes the computes of the emulator, and is scraped', async () => {
      await expect.poll(() => samples('rate(ebb_actions_total[1m]) >= 0'), PATIENCE).not.toEqual([]);
      await expect.poll(() => samples('ebb_mode{mode="enforce"} == 1'), PATIENCE).toHaveLength(1);
    });

    it('restarts a compute that is awake when a window opens', async () => {
      const policy = boundarySoon(40_000, 'size: 2-4').replace(
        'select: { projects: ["*"], min_age: 1m }',
        'priority: 10\n    select: { projects: ["web-shop"] }',
      );
      await writeFile(join(stack.fleetFolder, 'policies', 'soon.yaml'), policy);
      // A rate needs two scrapes.
      const started = 'rate(ebb_operations_total{action="start_compute", status="finished"}[1m]) >= 0';
      await expect.poll(() => samples(started), PATIENCE).toHaveLength(1);
      await expect.poll(() => samples('ebb_boundary_lateness_seconds_count > 0'), PATIENCE).toHaveLength(1);
    });

    it('lets an alert fire for a freeze, for broken policies, for a key that is refused, and for a daemon that is gone', async () => {
      expect(await firing()).not.toContain('EbbFrozenLong');
      const freeze = ['freeze', '--all', '--for', '1h', '--reason', 'a test', '--owner', 'tester'];
      expect(await startEbb(freeze, { env: stack.env, cwd: stack.fleetFolder }).ended).toBe(0);
      await expect.poll(firing, PATIENCE).toContain('EbbFrozenLong');
      await replaceFile(join(stack.fleetFolder, 'policies', 'try.yaml'), 'version: 1\npolicies: [{ name: broken }]\n');
      await expect.poll(firing, PATIENCE).toContain('EbbPoliciesNotLive');
      await writeFile(join(stack.fleetFolder, 'api-key'), 'revoked');
      await expect.poll(firing, PATIENCE).toContain('EbbKeyRejected');
      await stack.ebb.kill();
      await expect.poll(firing, PATIENCE).toContain('EbbDown');
    });
  });
});
