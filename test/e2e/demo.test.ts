import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';

let demo: EbbProcess | undefined;
afterEach(() => demo?.kill());

const leftovers = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('ebb-demo-'));

describe('ebb demo', () => {
  it('lives through a day of changes, shows what it was worth, serves metrics, and leaves nothing behind', async () => {
    const before = await leftovers();
    demo = startEbb(['demo', '--keep', '--listen', '127.0.0.1:0'], { env: { EBB_API_KEY: 'of somebody', TZ: 'UTC' } });
    const { lines } = demo;
    const metricsUrl = () => /Still up: (\S+)\./.exec(lines.join('\n'))?.[1];
    await expect.poll(metricsUrl, { timeout: 170_000, interval: 250 }).toBeDefined();

    const told = (time: string, text: RegExp) =>
      lines.filter((line) => line.startsWith(`Mon ${time}`) && text.test(line));
    expect(told('08:00:0', /demo-web-\w+ .* → 2-4 CU/)).toHaveLength(3);
    expect(told('18:30:0', /demo-web-\w+ .* → 0\.5-2 CU/)).toHaveLength(3);
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
    expect(await leftovers()).toEqual(before);
  }, 240_000);
});
