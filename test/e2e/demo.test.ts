import { readdir } from 'node:fs/promises';
import { request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';

let demo: EbbProcess | undefined;
afterEach(() => demo?.kill());

describe('ebb demo', () => {
  it('lives through a day of changes, shows what it was worth, serves metrics, and leaves nothing behind', async () => {
    const folder = await makeFolder();
    demo = startEbb(['demo', '--keep', '--listen', '127.0.0.1:0'], {
      env: { EBB_API_KEY: 'of somebody', TZ: 'UTC', TMPDIR: folder.path },
    });
    const { lines } = demo;
    const metricsUrl = () => /Still up: (\S+)\./.exec(lines.join('\n'))?.[1];
    await expect.poll(metricsUrl, { timeout: 170_000, interval: 250 }).toBeDefined();

    const told = (change: RegExp) =>
      lines.filter((line) => change.test(line)).map((line) => line.match(/demo-\S+/)?.[0]);
    const web = ['demo-web-blog', 'demo-web-checkout', 'demo-web-shop'];
    expect(told(/→ 2-4 CU.*office-hours-web, in its window/).toSorted()).toEqual(web);
    expect(told(/2-4 → 0\.5-2 CU.*office-hours-web, outside its windows/)).toEqual(expect.arrayContaining(web));
    // It has clients all day, so it waits for sleep until its deadline.
    expect(lines.join('\n')).toMatch(/^Mon 20:3\d:\d\d +demo-web-shop +2-4 → 0\.5-2 CU .*restarts$/m);
    expect(lines.join('\n')).toMatch(/demo-web-shop +└ start_compute finished, took \d+\.\d s/);
    expect(lines.find((line) => line.includes('│ all'))).toMatch(
      /│ +\d+ │ +\d+ │ +\d+ │ +[\d.]+–[\d.]+ │ +[\d.]+–[\d.]+ │/,
    );

    const { body } = await request(metricsUrl() ?? '');
    const metrics = await body.text();
    expect(metrics).toMatch(/^ebb_compute_state\{.*compute="ep-demo-web-shop".*\} 1$/m);
    expect(metrics).toMatch(/^ebb_operation_duration_seconds_count\{action="start_compute",status="finished"\} [1-9]/m);

    demo.child.kill('SIGINT');
    expect(await demo.ended).toBe(0);
    expect(demo.stderr()).toBe('');
    expect(await readdir(folder.path)).toEqual([]);
    await folder.remove();
  }, 240_000);
});
