/** What would cost less: a running daemon finds the same as `ebb recommend`, and shows it on its page, over HTTP and as metrics. */
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { WasteDocument } from '../../src/ports/waste.ts';
import { accessibilityProblems, launchBrowser } from '../support/browser.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { DAY } from '../support/demand.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { startPrometheus } from '../support/prometheus-server.ts';
import { describeWith } from '../support/requirements.ts';

const CRON = { class: 'cron_ping', cu: 0.1, everySeconds: 1800 } as const;
const OLD = { createdAtMs: Date.now() - 100 * DAY, lastActiveAtMs: Date.now() - 90 * DAY } as const;

let platform: Platform;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let daemon: TestDaemon;

beforeAll(async () => {
  platform = await startTestPlatform(
    {
      cron: { load: [CRON], maxCu: 2 },
      never: { state: 'active', suspendTimeoutSeconds: -1, load: [{ ...CRON, everySeconds: 7200 }] },
      forgotten: OLD,
      shop: { ...OLD, branch: { name: 'preview/login' } },
    },
    { historyMs: 28 * DAY, seed: 5, availabilityCheckMs: 0 },
  );
  folder = await makeFolder({
    'ebb.yaml': 'plan: scale\nowners: { cron: team-jobs }\n',
    'policy.yaml': 'version: 1\npolicies: []\n',
  });
  daemon = await startTestDaemon({ platform, folder: folder.path, env: { EBB_MODE: 'observe' }, wasteMs: 300 });
  await vi.waitFor(async () => expect((await ask()).projects).toBe(4), { timeout: 100_000, interval: 200 });
});

afterAll(async () => {
  await daemon.stop();
  await folder.remove();
  await platform.close();
});

const textOf = async (path: string) => (await request(`${daemon.url}${path}`)).body.text();
const ask = async (query = ''): Promise<WasteDocument> => JSON.parse(await textOf(`/api/v1/waste${query}`));

describe('the waste of a fleet', () => {
  it('is what ebb recommend lists', async () => {
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey };
    const child = startEbb(['recommend', '--json'], { cwd: folder.path, env });
    expect(await child.ended).toBe(0);
    const { findings } = JSON.parse(child.lines.join('\n')) as Pick<WasteDocument, 'findings'>;
    const shown = (all: WasteDocument['findings']) =>
      all.map(({ compute_id, finding, figure, owner, proposed, policy, project_name }) => {
        return { compute_id, finding, figure, owner, proposed, policy, project_name };
      });
    const found = await ask();
    expect(shown(found.findings)).toEqual(shown(findings));
    expect(findings.map(({ finding, owner }) => `${finding} ${owner}`)).toEqual([
      expect.stringMatching(/never_suspends unowned/),
      expect.stringMatching(/timeout team-jobs/),
      expect.stringMatching(/unused|preview/),
      expect.stringMatching(/unused|preview/),
    ]);
    const timeout = found.findings.find(({ finding }) => finding === 'timeout');
    expect(found.totals).toContainEqual({
      ...{ figure: 'at_least', by_policy: true, change_by: 'proposed_policy', findings: 1 },
      ...timeout?.saves,
    });
  });

  it('can be narrowed to an owner and a kind', async () => {
    expect((await ask('?owner=team-jobs')).findings.map(({ finding }) => finding)).toEqual(['timeout']);
    expect(await ask('?owner=team-jobs&finding=unused')).toMatchObject({ matched: 0, findings: [], totals: [] });
    expect((await ask('?finding=never_suspends')).owners).toEqual(['team-jobs', 'unowned']);
  });

  it('is a page without JavaScript, with figures and the text of each policy', async () => {
    const page = await textOf('/recommend');
    expect(page).not.toContain('<script');
    expect(page).toContain('<a href="/recommend">Recommendations</a>');
    expect(page).toContain('suspend_after never → 5m');
    expect(page).toMatch(/<td data-label="Figure"><div>at_least<\/div>/);
    expect(page).toMatch(/<pre>version: 1\npolicies:\n {2}- name: sleep-after-1m/);
    expect(await textOf('/recommend?owner=nobody')).toContain('Nothing is found');
  });

  it('is exported by owner, kind and figure', async () => {
    const { saves } = (await ask('?owner=team-jobs')).findings[0] ?? {};
    const labels = 'account="default",owner="team-jobs",finding="timeout",figure="at_least",bound="low"';
    const metrics = await textOf('/metrics');
    expect(metrics).toContain(`ebb_waste_month_cu_hours{${labels}} ${saves?.cu_hours_month.low}`);
    expect(metrics).toContain(`ebb_waste_month_usd{${labels}} ${saves?.usd_month?.low}`);
  });

  it('is found without a write, and without waking what sleeps', async () => {
    expect(await platform.writes()).toEqual([]);
    const answer = await request(`${platform.origin}/_emulator/state`);
    const { computes } = (await answer.body.json()) as { computes: { compute_id: string; active_seconds: number }[] };
    for (const compute_id of ['ep-forgotten', 'ep-shop'])
      expect(computes).toContainEqual(expect.objectContaining({ compute_id, active_seconds: 0 }));
    const read = async () =>
      (await platform.requests()).filter(({ path }) => /\/operations/.test(path)).map(({ path }) => path);
    // Once a day is enough: further looks ask nothing.
    const before = (await read()).length;
    await expect.poll(async () => (await ask()).projects).toBe(4);
    expect((await read()).length).toBe(before);
  });
});

describeWith('prometheus', 'the dashboard of it', () => {
  it('has an answer to each query', async () => {
    const prometheus = await startPrometheus({ folder: folder.path, target: new URL(daemon.url).host });
    try {
      const unanswered = async () =>
        (await prometheus.unanswered(60)).map(({ name }) => name).filter((name) => /cost less|Waste/.test(name));
      await expect.poll(unanswered, { interval: 500 }).toEqual([]);
    } finally {
      await prometheus.close();
    }
  });
});

describeWith('chromium', 'the page of it', () => {
  it.each([
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['on a phone', { viewport: { width: 360, height: 740 }, hasTouch: true }],
  ] as const)('has nothing that axe finds and nothing beside the screen, %s', async (_look, options) => {
    const browser = await launchBrowser();
    try {
      const page = await (await browser.newContext({ baseURL: daemon.url, ...options })).newPage();
      for (const path of ['/recommend', '/recommend?owner=nobody']) {
        await page.goto(path);
        for (const details of await page.locator('summary').all()) await details.click();
        expect([path, await accessibilityProblems(page)]).toEqual([path, []]);
        const tooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
        expect([path, await page.evaluate(tooWide)]).toEqual([path, false]);
      }
    } finally {
      await browser.close();
    }
  });
});
