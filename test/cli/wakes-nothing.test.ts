/** Looking costs nothing: no command about usage and costs wakes a compute, or writes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { usageFleet } from '../usage/support.ts';
import { onTrial } from './fleet-files.ts';

/** Of these routes all programs of an account share 50 requests a minute, and ebb uses half. */
const MAX_PER_MINUTE = 25;

describe('commands about usage and costs', () => {
  let platform: Platform;
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  beforeAll(async () => {
    // Nobody comes to these computes, so whatever wakes one is ebb.
    const { projects } = usageFleet();
    const asleep = projects.map((project) => ({
      ...project,
      computes: project.computes.map((compute) => ({ ...compute, load: [], connections: 0, state: 'idle' as const })),
    }));
    platform = await startTestPlatform({}, { fleet: { projects: asleep }, availabilityCheckMs: 0 });
    folder = await makeFolder({
      'policies.yaml': onTrial('2026-01-12', '2026-03-09'),
      'ebb.yaml': 'plan: scale\npolicies: policies.yaml\n',
    });
  });
  afterAll(async () => {
    await folder.remove();
    await platform.close();
  });

  async function ebb(...args: string[]) {
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey };
    const run = startEbb(args, { cwd: folder.path, env });
    const status = await run.ended;
    return { status, text: `${run.lines.join('\n')}${run.stderr()}` };
  }

  const usageRequests = async () =>
    (await platform.requests()).filter(({ path }) => path.includes('/consumption_history/')).length;

  it.each([
    ['cost'],
    ['usage', 'export', '--out', 'past'],
    ['savings'],
    ['forecast'],
    ['diff', 'policies.yaml', 'policies.yaml'],
    ['plan'],
    ['awake'],
    ['recommend'],
  ])('ebb %s only reads, within its share, and adds no second awake', async (...args) => {
    const before = await usageRequests();
    const { status, text } = await ebb(...args);
    expect([0, 2], text).toContain(status);
    expect(await platform.writes()).toEqual([]);
    expect((await usageRequests()) - before).toBeLessThanOrEqual(MAX_PER_MINUTE);
    const answer = await fetch(`${platform.origin}/_emulator/state`);
    const { computes } = (await answer.json()) as { computes: { state: string; active_seconds: number }[] };
    expect(computes.map(({ state, active_seconds }) => [state, active_seconds])).toEqual(
      computes.map(() => ['idle', 0]),
    );
  });
});
