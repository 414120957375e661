import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { startMetricsServer, vector } from '../support/metrics-server.ts';
import { fleetFile } from './fleet-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-guard-'));
const guard = (name: string, badWhen: string) =>
  `  - { name: ${name}, kind: guard, select: { projects: ["web-*"] }, source: main, query: p95, match: { service: "{project_name}" }, bad_when: "${badWhen}" }\n`;

beforeAll(() => {
  const computes = { 'web-shop/ep-shop': { state: 'active' }, 'web-asleep/ep-asleep': { state: 'idle' } };
  writeFileSync(join(folder, 'fleet.json'), fleetFile({ ...computes, 'dev/ep-other': { state: 'active' } }));
  const guards = `${guard('latency', '> 0.4')}${guard('relative', '> 1.5x before')}`;
  writeFileSync(join(folder, 'policy.yaml'), `version: 1\npolicies:\n${guards}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function testGuard(name: string, answer: string, ...flags: string[]) {
  const server = await startMetricsServer((_query, response) => response.end(answer));
  onTestFinished(() => server.close());
  writeFileSync(join(folder, 'ebb.yaml'), `sources: { main: { from: prometheus, url: "${server.url}" } }\n`);
  const args = ['guard', 'test', name, '--fleet', 'fleet.json', '--policies', 'policy.yaml', ...flags];
  const run = startEbb(args, { cwd: folder });
  const code = await run.ended;
  return { code, stdout: run.lines.join('\n'), stderr: run.stderr(), queries: server.queries };
}

it('ebb forecast says which guards may hold lowerings back', async () => {
  writeFileSync(join(folder, 'ebb.yaml'), 'sources: { main: { from: prometheus, url: "http://127.0.0.1:9" } }\n');
  const run = startEbb(['forecast', '--fleet', 'fleet.json', '--policies', 'policy.yaml'], { cwd: folder });
  expect(await run.ended).toBe(0);
  expect(run.stderr()).toContain('note: guard latency may hold lowerings of awake computes back');
});

describe('ebb guard test', () => {
  it('says of each selected compute what the guard says, by one query', async () => {
    const bad = vector({ labels: { service: 'web-shop' }, value: '0.5' });
    const { code, stdout, queries } = await testGuard('latency', bad);
    expect(stdout).toContain('bad  web-shop / ep-shop: 0.5, bad above 0.4\n');
    expect(stdout).toContain('unknown  web-asleep / ep-asleep: no series has its service="web-asleep" (asleep');
    expect(stdout).toContain('latency: 0 healthy, 1 bad, 1 unknown');
    expect([code, queries]).toEqual([0, ['p95']]);
    const { stdout: json } = await testGuard('latency', bad, '--json');
    expect(JSON.parse(json)).toMatchObject({
      ...{ guard: 'latency', query: 'p95', error: null },
      computes: expect.arrayContaining([
        expect.objectContaining({ compute_id: 'ep-shop', awake: true, verdict: 'bad', value: 0.5, limit: 0.4 }),
      ]),
    });
  });

  it('fails where it cannot say, and says why', async () => {
    const nothing = await testGuard('latency', vector());
    expect([nothing.code, nothing.stdout]).toEqual([1, expect.stringContaining('0 healthy, 0 bad, 2 unknown')]);
    const malformed = await testGuard('latency', '<html>');
    expect([malformed.code, malformed.stdout]).toEqual([1, expect.stringContaining('no answer:')]);
    const other = await testGuard('latencie', vector());
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining('no guard is called latencie; there are latency, relative'),
    ]);
  });

  it('shows a project whose name has line breaks in one line', async () => {
    const forged = fleetFile({ 'web-x/ep-x': {} }).replace(
      '"name":"web-x"',
      '"name":"web-x\\nhealthy  web-shop / ep-shop"',
    );
    writeFileSync(join(folder, 'forged.json'), forged);
    const { stdout } = await testGuard('latency', vector(), '--fleet', 'forged.json');
    expect(stdout).toContain('unknown  web-x?healthy  web-shop / ep-shop / ep-x: ');
    expect(stdout).not.toMatch(/^healthy/m);
  });
});
