import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { accessibilityProblems, launchBrowser } from '../support/browser.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { describeWith } from '../support/requirements.ts';

const TOKEN = 'a-token-of-ann-0123456789';
const PROJECTS = 50;
const COMPUTES = 20;
const WAIT = { timeout: 60_000, interval: 100 };

const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows:
      - at: Mon-Fri 08:00-18:00 Europe/Berlin
        size: 1-4
        suspend_after: never
    otherwise: { size: 0.25-1, suspend_after: 5m }
`;

const fleet = {
  projects: Array.from({ length: PROJECTS }, (_, project) => ({
    ...{ id: `shop-${project}`, name: `shop ${project}`, regionId: 'aws-eu-central-1', pgVersion: 17 },
    computes: Array.from({ length: COMPUTES }, (_unused, index) => ({
      id: `ep-shop-${project}-${index}`,
      branchId: `br-${project}-${index}`,
      ...({ type: 'read_write', minCu: 0.25, maxCu: index % 2 === 0 ? 0.25 : 2, suspendTimeoutSeconds: 300 } as const),
      ...(index % 5 === 0
        ? ({ state: 'active', connections: 3 } as const)
        : ({ state: 'idle', connections: 0 } as const)),
    })),
  })),
};

/** What the answers hold that these tests look at. */
interface Answer {
  id: string;
  known: number;
  computes: unknown[];
  holds: { id: string }[];
  freezes: { id: string }[];
}

describeWith('chromium', 'the status page of 1,000 computes', () => {
  const undo: (() => Promise<unknown>)[] = [];
  let browser: Browser;
  let daemon: TestDaemon;

  beforeAll(async () => {
    const platform = await startTestPlatform({}, { fleet });
    undo.push(() => platform.close());
    const folder = await makeFolder({ 'policy.yaml': POLICIES });
    undo.push(() => folder.remove());
    const tokenFile = join(folder.path, 'tokens');
    await writeFile(tokenFile, `ann: ${TOKEN}\n`);
    const env = { EBB_MODE: 'observe', EBB_TOKEN_FILE: tokenFile };
    [daemon, browser] = await Promise.all([
      startTestDaemon({ platform, folder: folder.path, env }),
      launchBrowser().then((launched) => {
        undo.push(() => launched.close());
        return launched;
      }),
    ]);
    undo.push(() => daemon.stop());
    await vi.waitFor(async () => expect((await ask('fleet')).known).toBe(PROJECTS * COMPUTES), {
      timeout: 150_000,
      interval: 500,
    });
  });

  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  // Another try of a test must not find what an earlier one has left.
  afterEach(async () => {
    const { holds } = await ask('holds');
    for (const { id } of holds) await ask('release', { target: id });
    for (const { id } of (await ask('freezes')).freezes) await unfreeze(id);
  });

  async function ask(path: string, body?: object): Promise<Answer> {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const answer = await fetch(`${daemon.url}/api/v1/${path}`, {
      headers,
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return (await answer.json()) as Answer;
  }

  async function unfreeze(id: string): Promise<void> {
    const headers = { authorization: `Bearer ${TOKEN}` };
    await (await fetch(`${daemon.url}/api/v1/freezes/${id}`, { method: 'DELETE', headers })).text();
  }

  /** A page of its own; whatever its console complains of is in `complaints`. */
  async function open(
    path: string,
    options: BrowserContextOptions = {},
  ): Promise<{ page: Page; complaints: string[] }> {
    const httpCredentials = { username: 'ann', password: TOKEN };
    const context = await browser.newContext({ httpCredentials, baseURL: daemon.url, ...options });
    undo.push(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    const complaints: string[] = [];
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => void complaints.push(String(error)));
    await page.goto(path);
    return { page, complaints };
  }

  async function hold(page: Page, fields: { reason: string; token?: string }) {
    await page.getByLabel('Minimum size').selectOption('2');
    await page.getByLabel('Maximum size').selectOption('4');
    await page.getByLabel('Reason').fill(fields.reason);
    if (fields.token !== undefined) {
      await page.getByText('With another token').click();
      await page.getByLabel('Token', { exact: true }).fill(fields.token);
    }
    await page.getByRole('button', { name: 'Hold' }).click();
  }

  const LOOKS: [string, BrowserContextOptions][] = [
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['on a phone', { viewport: { width: 360, height: 740 }, hasTouch: true }],
    ['at 400 pixels, light', { colorScheme: 'light', viewport: { width: 400, height: 800 } }],
    ['at 400 pixels, dark', { colorScheme: 'dark', viewport: { width: 400, height: 800 } }],
  ];

  it.each(LOOKS)('has nothing that axe finds and nothing beside the screen, %s', async (_look, options) => {
    // A word that is wider than its column.
    const reason = `incident_${'0123456789_'.repeat(12)}`;
    const { id } = await ask('holds', { compute: 'ep-shop-1-1', reason, for_seconds: 600, freeze: true });
    await ask('freezes', { select: { projects: ['shop-2'] }, reason: 'look', for_seconds: 600 });
    const { page, complaints } = await open('/', options);
    const rare = options.colorScheme === 'light' ? ['/?q=nobody', '/computes/ep-other'] : [];
    for (const path of [
      '/?q=shop-1-',
      '/computes/ep-shop-1-1',
      `/holds/${id}`,
      '/runbook',
      '/history',
      '/cost',
      ...rare,
    ]) {
      await page.goto(path);
      for (const details of await page.locator('summary').all()) await details.click();
      expect([path, await accessibilityProblems(page)]).toEqual([path, []]);
      const tooWide = await page.evaluate(
        'document.documentElement.scrollWidth > document.documentElement.clientWidth',
      );
      expect([path, tooWide]).toEqual([path, false]);
    }
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
  });

  it('is sent compressed, at less than 150 kB', async () => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'accept-encoding': 'gzip' };
    const { body, headers: answered } = await request(`${daemon.url}/`, { headers });
    expect(answered['content-encoding']).toBe('gzip');
    expect((await body.arrayBuffer()).byteLength).toBeLessThan(150_000);
  });

  it('shows fifty at a time, with their week, and finds the others', async () => {
    const { page } = await open('/');
    const rows = page.locator('#computes tbody tr');
    expect(await rows.count()).toBe(50);
    expect((await ask('fleet')).computes.length).toBe(300);
    await expect
      .poll(async () => {
        await page.reload();
        return page.locator('#computes svg').count();
      }, WAIT)
      .toBe(50);
    expect(await page.locator('#computes svg').first().getAttribute('aria-label')).toMatch(
      /^Week ahead: \d+ changes, 0\.25 to 4 CU$/,
    );
    await page.getByRole('link', { name: 'Next', exact: true }).click();
    expect(await page.locator('#computes caption').textContent()).toBe(
      '1,000 computes, what needs attention first; page 2 of 20',
    );
    await page.goto('/?q=idle');
    await page.getByRole('link', { name: 'Next', exact: true }).click();
    expect(await page.locator('#computes caption').textContent()).toBe(
      '800 of 1,000 computes, what needs attention first; page 2 of 16',
    );
    expect(await page.locator('#summary').textContent()).toContain('Of 800 of 1,000 computes.');
    await page.getByLabel('Find').fill('shop-17 active');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=shop-17/);
    expect(await rows.count()).toBe(COMPUTES / 5);
    await rows.getByRole('link').first().click();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toMatch(/^ep-shop-17-/);
    expect(await page.locator('#why').textContent()).toContain('office-hours');
  });

  it('has a few lines for each compute on a phone', async () => {
    const { page } = await open('/', { viewport: { width: 400, height: 800 } });
    const rows = await page.locator('#computes tbody tr').all();
    const heights = await Promise.all(rows.map(async (row) => (await row.boundingBox())?.height ?? 0));
    expect(Math.max(...heights)).toBeLessThan(150);
    expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThan(12_000);
  });

  it.each([
    ['with a script', true],
    ['without one', false],
  ])('holds and releases by its forms, %s, and never shows the token again', async (_how, javaScriptEnabled) => {
    const { page } = await open('/computes/ep-shop-3-4', { javaScriptEnabled });
    await hold(page, { reason: 'wrong', token: 'not-the-token-0123456789' });
    expect(await page.getByRole('alert').textContent()).toMatch(/no token of the daemon/);
    expect(await page.getByLabel('Reason').inputValue()).toBe('wrong');
    expect(await page.getByLabel('Token', { exact: true }).inputValue()).toBe('');
    await hold(page, { reason: 'import' });
    expect(page.url()).toBe(`${daemon.url}/computes/ep-shop-3-4?done=held`);
    expect(await page.content()).not.toContain(TOKEN);
    expect((await ask('holds')).holds).toMatchObject([
      { compute_id: 'ep-shop-3-4', owner: 'ann', reason: 'import', size: { min_cu: 2, max_cu: 4 } },
    ]);
    await page.getByRole('link', { name: /^Release/ }).click();
    await page.getByRole('button', { name: 'Release' }).click();
    expect(page.url()).toBe(`${daemon.url}/computes/ep-shop-3-4?done=released`);
    expect((await ask('holds')).holds).toEqual([]);
  });

  it('takes no form about a compute or a hold that is not there, however it is written', async () => {
    const headers = { authorization: `Bearer ${TOKEN}`, origin: daemon.url };
    const fields = { for_seconds: '600', reason: 'nowhere', freeze: 'on', token: TOKEN };
    const send = async (path: string, body: Record<string, string>) => {
      const sent = { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams(body) } as const;
      const { status, headers: got } = await fetch(`${daemon.url}${path}`, sent);
      return [status, got.get('location')];
    };
    for (const id of ['ep-other', 'shop-3%2Fep-shop-3-4', 'shop-3%2Fep-other']) {
      expect(await send(`/computes/${id}/holds`, fields)).toEqual([404, null]);
    }
    for (const id of ['h-0', 'ep-shop-3-4']) {
      expect(await send(`/holds/${id}/release`, { token: TOKEN })).toEqual([404, null]);
    }
    expect((await ask('holds')).holds).toEqual([]);
  });

  it('refreshes by itself: what changed is there, and focus, place and what was opened stay', async () => {
    const { page } = await open('about:blank');
    await page.clock.install();
    await page.goto('/computes/ep-shop-4-4');
    await page.locator('#week summary').click();
    await page.getByLabel('Reason').fill('half writ');
    await page.locator('#week summary').focus();
    await page.evaluate('scrollTo(0, 200)');
    await ask('holds', { compute: 'ep-shop-4-4', reason: 'meanwhile', for_seconds: 600, freeze: true });
    await page.clock.fastForward(11_000);
    await page.locator('#holds').getByText('meanwhile').waitFor();
    expect(await page.evaluate('[document.activeElement.tagName, Math.round(scrollY)]')).toEqual(['SUMMARY', 200]);
    expect(await page.locator('#week-table').getAttribute('open')).toBe('');
    expect(await page.getByLabel('Reason').inputValue()).toBe('half writ');
  });

  it('asks nothing while it is paused or nobody sees it, and says when the daemon does not answer', async () => {
    const { page } = await open('about:blank');
    await page.clock.install();
    await page.goto('/');
    let asked = 0;
    await page.route('**/*', async (route) => {
      asked += 1;
      await route.abort();
    });
    await page.getByRole('button', { name: 'Pause updates' }).click();
    await page.getByRole('button', { name: 'Pause updates', pressed: true }).waitFor();
    asked = 0;
    await page.clock.fastForward(60_000);
    await page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })");
    await page.getByRole('button', { name: 'Pause updates' }).click();
    await page.clock.fastForward(60_000);
    expect(asked).toBe(0);
    await page.evaluate("Object.defineProperty(document, 'hidden', { value: false })");
    await page.clock.fastForward(11_000);
    await page.getByText('Not connected').waitFor();
    expect(asked).toBeGreaterThan(0);
  });

  it('can be walked through with a keyboard', async () => {
    const { page } = await open('/');
    await page.keyboard.press('Tab');
    const focused = () =>
      page.evaluate<string>('document.activeElement.textContent.trim() || document.activeElement.id');
    expect(await focused()).toBe('Skip to content');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await focused()).toMatch(/computes|enforced|observed/);
    const outline = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle');
    expect(outline).toBe('solid');
  });
});
