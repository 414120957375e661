import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { StatusDocument } from '../../src/ports/documents.ts';
import { accessibilityProblems, launchBrowser } from '../support/browser.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus-server.ts';
import { describeWith } from '../support/requirements.ts';
import { DAY_MS, usageFleet } from '../usage/support.ts';

const PATIENCE = { timeout: 60_000, interval: 500 };

const POLICY = `version: 1
owner: team-one
policies:
  - name: ceiling
    kind: limits
    mode: observe
    select: { projects: ["one-*"] }
    size: { max: 8 }
  - name: month
    kind: budget
    mode: observe
    select: { projects: ["*"] }
    month: 100000 CUh
    steps: [{ at: 100% spent, limits: { size: { max: 1 } } }]
`;

describeWith('prometheus', 'a daemon whose projects belong to an organization', () => {
  let platform: Platform;
  let daemon: TestDaemon;
  let prometheus: Prometheus;
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  beforeAll(async () => {
    folder = await makeFolder({ 'policy.yaml': POLICY });
    const fleet = { ...usageFleet(), historyMs: 35 * DAY_MS };
    platform = await startTestPlatform({}, { fleet, availabilityCheckMs: 0 });
    daemon = await startTestDaemon({ platform, folder: folder.path, env: { EBB_MODE: 'observe' } });
    prometheus = await startPrometheus({ folder: folder.path, target: new URL(daemon.url).host });
  });
  afterAll(async () => {
    await prometheus?.close();
    await daemon?.stop();
    await platform?.close();
    await folder?.remove();
  });

  /** Asked until there is one: after a scrape that came too late there is none. */
  const sum = (expr: string): Promise<number> =>
    vi.waitFor(async () => {
      const { result } = await prometheus.ask<{ result: { value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(`sum(${expr})`)}`,
      );
      if (!result[0]) throw new Error(`no sample of ${expr}`);
      return Number(result[0].value[1]);
    }, PATIENCE);

  it('shows what this month has cost, by owner, and answers every query of the dashboard', async () => {
    expect(await sum('ebb_usage_month_cu_seconds{owner="team-one"}')).toBeGreaterThan(0);
    const used = await sum('ebb_usage_month_cu_seconds');
    expect((await sum('ebb_cost_month_to_date_usd')) / ((used / 3600) * 0.222)).toBeCloseTo(1, 6);
    await vi.waitFor(async () => {
      const names = (await prometheus.unanswered(60)).map(({ name }) => name);
      // What would cost less is found elsewhere: waste.test.ts has that.
      expect(names.filter((name) => /^ebb-cost.json(?!.*(cost less|Waste))/.test(name))).toEqual([]);
    }, PATIENCE);
  });

  it('shows it on the page, in the totals of owners, and in ebb status', async () => {
    const { costs } = (await (await fetch(`${daemon.url}/api/v1/status`)).json()) as StatusDocument;
    const usd = await sum('ebb_cost_month_to_date_usd');
    expect(costs?.total.usd).toBeCloseTo(usd, 1);
    const projected = await sum('ebb_cost_month_projected_usd{bound="mid"}');
    // The total is projected from its own days, so it is near the sum of its owners, not the same.
    expect((costs?.total.projected_usd?.mid ?? 0) / projected).toBeCloseTo(1, 1);
    const page = async (path: string) =>
      (await (await fetch(`${daemon.url}${path}`)).text()).replaceAll('<!-- -->', '');
    expect(await page('/')).toMatch(/\$[\d.,]+<.strong> this month<br.*\$[\d.,]+ to \$[\d.,]+ projected/s);
    const cost = await page('/cost');
    expect(cost).toMatch(/\$[\d.,]+<.strong> so far.*Spent and projected.*<svg class="budget"/s);
    expect(cost).toMatch(/data-label="Days"><div><svg class="bars".*<h2 id="projects-title">.*<a href="\/\?project=/s);
    expect(await page('/cost?owner=team-one')).toMatch(/This month of team-one/);
    expect(await page('/computes/ep-one-main')).toMatch(/What its branch costs.*This month \$[\d.]+/s);
    expect(await page('/?group=owner')).toMatch(/team-one<.*\$[\d.,]+ so far/s);
    const run = startEbb(['status', '--url', daemon.url], { cwd: folder.path, env: {} });
    expect(await run.ended, run.stderr()).toBe(0);
    expect(run.lines.join('\n')).toMatch(/^compute since .*: \$[\d.,]+ so far, .* by the end of the month$/m);
  });

  describeWith('chromium', 'the pages of it', () => {
    it.each([
      ['light', { colorScheme: 'light' }],
      ['dark', { colorScheme: 'dark' }],
      ['on a phone', { viewport: { width: 360, height: 740 }, hasTouch: true }],
    ] as const)('have nothing that axe finds and nothing beside the screen, %s', async (_look, options) => {
      const browser = await launchBrowser();
      try {
        const page = await (await browser.newContext({ baseURL: daemon.url, ...options })).newPage();
        for (const path of ['/', '/cost', '/cost?owner=team-one', '/computes/ep-one-main']) {
          const answer = await page.goto(path);
          for (const details of await page.locator('summary').all()) await details.click();
          expect([path, answer?.status(), await accessibilityProblems(page)]).toEqual([path, 200, []]);
          const tooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
          expect([path, await page.evaluate(tooWide)]).toEqual([path, false]);
        }
      } finally {
        await browser.close();
      }
    });
  });

  it('only reads for it', async () => {
    expect(await platform.writes()).toEqual([]);
    const asked = (await platform.requests()).filter(({ path }) => path.includes('/consumption_history/'));
    expect(new Set(asked.map(({ method }) => method))).toEqual(new Set(['GET']));
    // Hours, days and months of projects, hours and days of branches; each list ends with an empty page. With the hour it is read again.
    const hourOf = (at = '') => at.slice(0, 'YYYY-MM-DDTHH'.length);
    expect(asked.filter(({ at }) => hourOf(at) === hourOf(asked[0]?.at))).toHaveLength(10);
  });

  it('tells ebb cost beside it what it has collected, and nothing is asked again', async () => {
    const usageRequests = async () =>
      (await platform.requests()).filter(({ path }) => path.includes('/consumption_history/')).length;
    const before = await usageRequests();
    const run = startEbb(['cost', '--json', '--policies', 'policy.yaml'], {
      cwd: folder.path,
      env: {
        EBB_API_URL: platform.url,
        EBB_API_KEY: platform.apiKey,
        EBB_QUEUE_URL: `embedded:${folder.path}/queue`,
        EBB_GROUP: 'test',
      },
    });
    expect(await run.ended, run.stderr()).toBe(0);
    const { total } = JSON.parse(run.lines.join('\n'));
    expect(total.cu_hours * 3600).toBeCloseTo(await sum('ebb_usage_month_cu_seconds'), 0);
    expect(await usageRequests()).toBe(before);
  });
});
