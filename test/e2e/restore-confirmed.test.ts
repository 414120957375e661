/** Only what a person has confirmed goes back, and once: with policies current, disabled and enabled again, and daemons that end in between. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { inject, it, type TestContext } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { programPath } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { replaceFile } from '../support/replace-file.ts';
import { describeWith } from '../support/requirements.ts';

const COMPUTES = 60;
const CONFIRMED = 50;
/** The two fleets run side by side, so each has half of a busy machine. */
const WAIT = { timeout: 100_000, interval: 100 };
const NAMES = Array.from({ length: COMPUTES }, (_, index) => `web-${String(index).padStart(2, '0')}`);

const policies = (enabled: boolean) => `version: 1
policies:
  - name: small
    enabled: ${enabled}
    kind: schedule
    select: { projects: ["web-*"], min_age: 1m }
    windows: [{ at: always, size: 0.5 }]
    otherwise: leave
`;

async function aFleet(on: 'redis' | 'embedded', { expect, onTestFinished }: TestContext) {
  const folder = await makeFolder({ 'policy.yaml': policies(true) });
  onTestFinished(() => folder.remove());
  const redis = on === 'redis' ? await startRedisServer() : undefined;
  onTestFinished(async () => redis?.close());
  const queueUrl = redis?.url ?? (await prepareQueue(folder.path)).url;
  const fleet = NAMES.map((name) => [name, { minCu: 2, maxCu: 2 }] as const);
  const platform = await startTestPlatform(Object.fromEntries(fleet), { operationTimeMs: 50 });
  onTestFinished(() => platform.close());
  const listen = `127.0.0.1:${await freePort()}`;
  const env = {
    ...{ EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: queueUrl, EBB_GROUP: 'test' },
    ...{ EBB_LISTEN: listen, EBB_MODE: 'enforce', EBB_POLICIES: join(folder.path, 'policy.yaml') },
  };
  let daemon: EbbProcess | undefined;
  onTestFinished(async () => daemon?.kill());
  const status = async () => {
    const answer = await fetch(`http://${listen}/api/v1/status`).catch(() => undefined);
    return answer?.ok
      ? ((await answer.json()) as { computes: object; waiting: object[]; operations: object[] })
      : undefined;
  };
  return {
    env: { ...env, PATH: process.env.PATH ?? '' },
    cwd: folder.path,
    setEnabled: (enabled: boolean) => replaceFile(join(folder.path, 'policy.yaml'), policies(enabled)),
    async startDaemon() {
      daemon = startEbb(['run'], { cwd: folder.path, env });
      // Before that a command could open an embedded store itself.
      await expect.poll(async () => (await status()) !== undefined, WAIT).toBe(true);
    },
    endDaemon: async (signal: NodeJS.Signals) => daemon?.kill(signal),
    logged: (event: string) => daemon?.logs().filter((line) => line.event === event).length,
    /** So many computes have each status, nothing is under way, and the store knows of how many policies set the size. */
    async settled(computes: Record<string, number>, setByPolicies: number) {
      await expect.poll(async () => (await status())?.computes, WAIT).toEqual(computes);
      await expect.poll(async () => (await status())?.operations, WAIT).toEqual([]);
      const known = async () => {
        const answer = await fetch(`http://${listen}/api/v1/records`);
        const { records } = (await answer.json()) as { records: { records: Record<string, { setBy?: object }> }[] };
        const all = records.flatMap((project) => Object.values(project.records));
        return [all.length, all.filter(({ setBy }) => setBy).length];
      };
      await expect.poll(known, WAIT).toEqual([COMPUTES, setByPolicies]);
    },
    /** How many PATCHes set this size. */
    async patched(cu: number) {
      const writes = (await platform.writes()).filter(({ method }) => method === 'PATCH');
      const bodies = writes.map(({ body }) => body as { endpoint: { autoscaling_limit_max_cu?: number } });
      return bodies.filter(({ endpoint }) => endpoint.autoscaling_limit_max_cu === cu).length;
    },
    async ebb(...args: string[]) {
      const run = startEbb(args, { cwd: folder.path, env });
      return { status: await run.ended, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
    },
  };
}

describeWith('redis-server', 'ebb restore of a fleet', () => {
  it.concurrent.for(['redis', 'embedded'] as const)('%s: brings back what was confirmed, once', async (on, test) => {
    const { setEnabled, startDaemon, endDaemon, logged, settled, patched, ebb } = await aFleet(on, test);
    const { expect } = test;
    await startDaemon();
    await expect.poll(() => patched(0.5), WAIT).toBe(COMPUTES);
    await settled({ enforced: COMPUTES }, COMPUTES);

    // Policies are current: nothing is requested, and nothing goes back when they are disabled.
    const current = await ebb('restore', '--all', '--yes');
    expect(current.stdout).toContain('0 computes to go back; 60 left to policies; 0 with nothing to do');
    expect(current.stdout).toContain('size is set by small');
    expect(current.stdout).toMatch(/^unowned +0 +0 +60 +0$/m);
    await setEnabled(false);
    await settled({ orphaned: COMPUTES }, 0);
    await endDaemon('SIGKILL');
    await startDaemon();
    await settled({ orphaned: COMPUTES }, 0);
    expect(await patched(2)).toBe(0);

    // Policies are disabled: only those go back whose number was confirmed.
    const unasked = await ebb('restore', '--all', '--json');
    const question = 'this changes 60 computes, and there is no terminal to ask on: add --confirm 60 or --yes';
    expect(unasked).toEqual({ status: 1, stdout: '', stderr: `ebb: ${question}` });
    const ofTeam = await ebb('restore', '--owner', 'unowned');
    expect(ofTeam).toMatchObject({ status: 1, stderr: `ebb: ${question}` });
    expect(ofTeam.stdout.match(/^ep-web-\d+ .*goes back$/gm)).toHaveLength(COMPUTES);
    const some = NAMES.slice(0, CONFIRMED).map((name) => `ep-${name}`);
    const wrong = await ebb('restore', ...some, '--confirm', '49');
    expect([wrong.status, wrong.stderr]).toEqual([1, 'ebb: this changes 50 computes, not 49: nothing was changed']);
    await endDaemon('SIGTERM');
    const asked = await ebb('restore', ...some, '--confirm', '50', '--json');
    expect(JSON.parse(asked.stdout)).toMatchObject({ count: CONFIRMED });
    await startDaemon();
    await expect.poll(() => patched(2), WAIT).toBe(CONFIRMED);
    await endDaemon('SIGKILL');
    await startDaemon();

    // Policies are enabled again, while another request waits behind a freeze: it is dropped for good.
    await expect.poll(async () => (await ebb('freeze', '--all', '--for', '1h', '--reason', 'x')).status, WAIT).toBe(0);
    await settled({ frozen: COMPUTES }, 0);
    const rest = await ebb('restore', '--all', '--yes', '--json');
    expect(JSON.parse(rest.stdout)).toMatchObject({ count: COMPUTES - CONFIRMED });
    await setEnabled(true);
    await expect.poll(() => logged('ebb.restore_dropped'), WAIT).toBe(COMPUTES - CONFIRMED);
    await endDaemon('SIGKILL');
    await setEnabled(false);
    await startDaemon();
    await settled({ frozen: COMPUTES }, 0);
    // Until the new daemon leads and reports, the count that asks for a confirmation is that of the one that was killed.
    await expect.poll(async () => (await ebb('unfreeze')).status, WAIT).toBe(0);
    await settled({ unmatched: CONFIRMED, orphaned: COMPUTES - CONFIRMED }, 0);
    expect(await ebb('restore', '--cancel', '--all')).toMatchObject({
      stdout: 'no request waits: nothing is withdrawn',
    });
    expect([await patched(0.5), await patched(2)]).toEqual([COMPUTES, CONFIRMED]);
  });
});

describeWith('script', 'ebb restore on a terminal', () => {
  it('asks for the number of computes, and withdraws what was requested', async (test) => {
    const { env, cwd, setEnabled, startDaemon, endDaemon, settled, ebb } = await aFleet('embedded', test);
    const { expect, onTestFinished } = test;
    await startDaemon();
    await settled({ enforced: COMPUTES }, COMPUTES);
    await setEnabled(false);
    await settled({ orphaned: COMPUTES }, 0);
    await endDaemon('SIGTERM');
    const typed = async (answer: string) => {
      const command = `${process.execPath} ${inject('ebbMain')} restore --all`;
      const run = spawn(programPath('script'), ['-qfec', command, '/dev/null'], { cwd, env });
      onTestFinished(() => void run.kill('SIGKILL'));
      let output = '';
      let isAnswered = false;
      run.stdout.on('data', (chunk) => {
        output += chunk;
        if (isAnswered || !output.includes('Type 60 to change 60 computes now: ')) return;
        isAnswered = true;
        run.stdin.write(`${answer}\n`);
      });
      const status = await new Promise((resolve) => run.once('close', resolve));
      return { status, output };
    };
    expect(await typed('yes')).toMatchObject({
      status: 1,
      output: expect.stringContaining('not confirmed: nothing was'),
    });
    expect(await ebb('restore', '--cancel', '--all')).toMatchObject({
      stdout: 'no request waits: nothing is withdrawn',
    });
    const asked = await typed('60');
    expect(asked).toMatchObject({ status: 0, output: expect.stringContaining('requested: 60 computes to go back') });
    const cancelled = await ebb('restore', '--cancel', 'ep-web-00', 'ep-web-01');
    expect(cancelled.stdout).toBe('ep-web-00 no longer goes back\nep-web-01 no longer goes back');
    expect(JSON.parse((await ebb('restore', '--cancel', '--all', '--json')).stdout)).toMatchObject({ count: 58 });
  });
});
