import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { replaceFile } from '../support/replace-file.ts';
import { describeWith } from '../support/requirements.ts';

const WAIT = { timeout: 40_000, interval: 50 };

const always = (name: string, size: string) => `version: 1
policies:
  - name: ${name}
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: ${size} }]
    otherwise: leave
`;

/** A folder as the kubelet mounts a ConfigMap: its files lead through a link, which is swapped for the next version. */
async function mountedVolume(folder: string, firstText: string) {
  let version = 0;
  await mkdir(join(folder, 'policies'));
  const at = (name: string) => join(folder, 'policies', name);
  const publish = async (text: string) => {
    version += 1;
    await mkdir(at(`..${version}`));
    await writeFile(at(`..${version}/web.yaml`), text);
    await symlink(`..${version}`, at('..data_tmp'));
    await rename(at('..data_tmp'), at('..data'));
    await rm(at(`..${version - 1}`), { recursive: true, force: true });
  };
  await publish(firstText);
  await symlink('..data/web.yaml', at('web.yaml'));
  return publish;
}

async function start() {
  const redis = await startRedisServer();
  onTestFinished(() => redis.close());
  const platform = await startTestPlatform({ one: {} });
  onTestFinished(() => platform.close());
  const listen = `127.0.0.1:${await freePort()}`;
  const folder = await makeFolder({ 'ebb.yaml': 'mode: enforce\nrevision: first\n' });
  onTestFinished(() => folder.remove());
  const publish = await mountedVolume(folder.path, always('small', '0.5'));
  const ebb = startEbb(['run'], {
    cwd: folder.path,
    env: { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: redis.url, EBB_LISTEN: listen },
  });
  onTestFinished(() => ebb.kill());
  return {
    ...{ ebb, publish, ebbUrl: `http://${listen}` },
    said: (event: string) => ebb.logs().filter((line) => line.event === event),
    page: async (path: string) => (await request(`http://${listen}/${path}`)).body.text(),
    changeSettings: (text: string) => replaceFile(join(folder.path, 'ebb.yaml'), text),
    sizes: async () => {
      const bodies = (await platform.writes()).map(({ body }) => body as { endpoint: Record<string, number> });
      return bodies.map(({ endpoint }) => endpoint.autoscaling_limit_max_cu);
    },
  };
}

describeWith('redis-server', 'ebb run', () => {
  it('reloads what is swapped in, and keeps what it has while that is invalid', async () => {
    const { ebb, ebbUrl, publish, sizes, said, page, changeSettings } = await start();
    await expect.poll(sizes, WAIT).toEqual([0.5]);

    await publish(always('larger', '1'));
    await expect.poll(sizes, WAIT).toEqual([0.5, 1]);
    const [loaded] = said('ebb.policies_loaded');
    expect(loaded).toMatchObject({ policies: ['larger'], revision: 'first', hash: expect.stringMatching(/^\w{64}$/) });

    await publish(always('broken', 'huge'));
    await expect.poll(() => said('ebb.policies_refused'), WAIT).toHaveLength(1);
    const [refused] = said('ebb.policies_refused');
    expect(refused?.hash).toBe(loaded?.hash);
    expect(String(refused?.msg)).toMatch(/^policies\/web\.yaml:6:35: .*stays current$/);
    expect(await page('metrics')).toMatch(/^ebb_policy_load_success 0$/m);
    expect(await page('metrics')).toMatch(/^ebb_policy_info\{policy="larger",/m);
    expect(JSON.parse(await page('readyz'))).toMatchObject({ ready: true });
    expect(await page('readyz')).toContain('policies/web.yaml:6:35');
    const status = startEbb(['status', '--url', ebbUrl]);
    expect(await status.ended).toBe(0);
    expect(status.lines.join('\n')).toMatch(
      /^policies: the files as last read are invalid: policies\/web\.yaml:6:35: /m,
    );

    ebb.child.kill('SIGHUP');
    await publish(always('mended', '2'));
    await expect.poll(sizes, WAIT).toEqual([0.5, 1, 2]);
    expect(said('ebb.policies_refused')).toHaveLength(1);
    expect(said('ebb.policies_recovered')).toHaveLength(1);
    expect(await page('metrics')).toMatch(/^ebb_policy_load_success 1$/m);
    expect(await page('metrics')).not.toMatch(/^ebb_policy_info\{policy="larger",/m);

    await changeSettings('mode: observe\nlog_level: warn\nrevision: second\n');
    await expect.poll(() => said('ebb.restart_needed'), WAIT).toHaveLength(1);
    expect(said('ebb.restart_needed')[0]?.settings).toEqual(['mode', 'log_level']);
    const latest = () => said('ebb.policies_loaded').at(-1);
    await expect.poll(latest, WAIT).toMatchObject({ policies: ['mended'], revision: 'second' });

    await changeSettings('mode: observe\nlisten: [\n');
    await expect.poll(() => said('ebb.policies_refused'), WAIT).toHaveLength(2);
    expect(String(said('ebb.policies_refused')[1]?.msg)).toMatch(/^ebb\.yaml:\d+:\d+: /);
    await stop(ebb);
  });
});

async function stop(ebb: EbbProcess): Promise<void> {
  ebb.child.kill('SIGTERM');
  expect(await ebb.ended).toBe(0);
  expect(ebb.stderr()).toBe('');
}
