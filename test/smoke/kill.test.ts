import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { boundarySoon, makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';

describe('a daemon that is killed in the middle of an operation', () => {
  it('is succeeded by one that follows the operation to its end and sends nothing twice', async () => {
    const platform = await startTestPlatform({ one: { state: 'active', connections: 2 } }, { operationTimeMs: 300 });
    onTestFinished(() => platform.close());
    // It lasts until there is a successor.
    await platform.control('faults', { kind: 'operation', action: 'apply_config', outcome: 'hang' });
    const folder = await makeFolder();
    onTestFinished(() => folder.remove());
    const queue = await prepareQueue(folder.path);
    // However long its start takes, it may change what it has just met.
    const policy = boundarySoon(15_000, 'size: 1-2').replace(
      '    windows:',
      '    disruption: { newly_discovered: act }\n    windows:',
    );
    await writeFile(join(folder.path, 'policy.yaml'), policy);
    const start = (): EbbProcess => {
      const ebb = startEbb(['run', '--mode', 'enforce', '--policies', 'policy.yaml', '--listen', '127.0.0.1:0'], {
        cwd: folder.path,
        env: {
          EBB_API_URL: platform.url,
          EBB_API_KEY: platform.apiKey,
          EBB_QUEUE_URL: queue.url,
          EBB_GROUP: queue.group,
          EBB_LOG_LEVEL: 'debug',
        },
      });
      onTestFinished(() => ebb.kill());
      return ebb;
    };

    const first = start();
    await expect.poll(() => platform.writes(), { timeout: 80_000, interval: 20 }).toHaveLength(1);
    await first.kill('SIGKILL');

    const second = start();
    await platform.clearFaults();
    const ended = () => second.logs().filter(({ event }) => event === 'ebb.operation');
    await expect.poll(ended, { timeout: 80_000 }).toContainEqual(expect.objectContaining({ status: 'finished' }));
    expect(await platform.writes()).toHaveLength(1);

    second.child.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    expect(second.stderr()).toBe('');
  }, 240_000);
});
