import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';

const EVERYTHING = `version: 1
policies:
  - name: everything
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: 8, suspend_after: never }]
    otherwise: leave
`;

describe('ebb run without an explicit enforce', () => {
  it('says in the first line of the log that nothing is written, and writes nothing', async () => {
    const platform = await startTestPlatform({ one: {}, two: { state: 'active', connections: 1 }, three: {} });
    onTestFinished(() => platform.close());
    const folder = await makeFolder({ 'policy.yaml': EVERYTHING });
    onTestFinished(() => folder.remove());
    await copyDatabase(join(folder.path, '.ebb'));
    const ebb = startEbb(['run', '--policies', 'policy.yaml', '--listen', '127.0.0.1:0'], {
      cwd: folder.path,
      env: { EBB_API_URL: platform.url, NEON_API_KEY: platform.apiKey },
    });
    onTestFinished(() => ebb.kill());

    const held = () => ebb.logs().filter(({ event }) => event === 'ebb.held_back');
    await expect.poll(held, { timeout: 50_000 }).toHaveLength(3);
    expect(ebb.logs()[0]).toMatchObject({ event: 'ebb.start', mode: 'observe', api: platform.url, computes: 3 });
    expect(String(ebb.logs()[0]?.msg)).toContain('nothing is written');

    ebb.child.kill('SIGTERM');
    expect(await ebb.ended).toBe(0);
    expect(await platform.writes()).toEqual([]);
    expect(ebb.lines.join('\n') + ebb.stderr()).not.toContain(platform.apiKey);
  });
});
