/** What `ebb explain` costs a large fleet: it reads one project, whatever is to be done there. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

const PROJECTS = 300;
const MOST_REQUESTS = 5;

const POLICY = `version: 1
policies:
  - name: larger
    kind: schedule
    select: { projects: ["*"], min_age: 0s }
    windows: [{ at: always, size: 2 }]
    otherwise: leave
    disruption: { raise: { when: any }, at_once: 10% }
`;

describe('ebb explain on 300 projects, without a daemon', () => {
  let platform: Platform;
  let cwd = '';
  let remove = async () => {};

  beforeAll(async () => {
    const fleet = Array.from({ length: PROJECTS }, (_, nth) => [`shop-${nth}`, { state: nth < 9 ? 'active' : 'idle' }]);
    platform = await startTestPlatform(Object.fromEntries(fleet));
    const folder = await makeFolder({ 'policy.yaml': POLICY });
    ({ path: cwd, remove } = folder);
  });
  afterAll(async () => {
    await platform.close();
    await remove();
  });

  async function explain(name: string) {
    const before = (await platform.requests()).length;
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_POLICIES: 'policy.yaml' };
    const run = startEbb(['explain', name, '--json'], { cwd, env });
    expect(await run.ended).toBe(0);
    const answer = JSON.parse(run.lines.join('\n')) as { verdict: string };
    return { ...answer, notes: run.stderr(), requests: (await platform.requests()).length - before };
  }

  it('an idle compute', async () => {
    const { requests, verdict } = await explain('shop-100/ep-shop-100');
    expect(verdict).toBe('act');
    expect(requests).toBeLessThanOrEqual(MOST_REQUESTS);
  });

  it('an active compute, which is restarted: what only the whole fleet shows is said', async () => {
    const { requests, notes } = await explain('shop-7/ep-shop-7');
    expect(notes).toContain('at_once');
    expect(requests).toBeLessThanOrEqual(MOST_REQUESTS);
  });
});
