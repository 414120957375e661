/** The list of computes of a fleet of several teams, where a laptop shows it. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { launchBrowser } from '../support/browser.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { describeWith } from '../support/requirements.ts';

const TEAMS = ['checkout', 'warehouse', 'analytics', 'platform', 'storefront', 'payments'];
const PROJECTS = 300;
const SETTINGS = `owners:
${TEAMS.map((team) => `  "${team}-*": team-${team}`).join('\n')}
`;

/** An active compute waits for its sleep, and each has a boundary ahead. */
const POLICIES = `version: 1
policies:
  - name: office-hours-of-all-teams
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 Europe/Berlin, size: 0.5-1, suspend_after: never }]
    otherwise: { size: 0.25-1, suspend_after: 5m }
`;

const computes = Object.fromEntries(
  Array.from({ length: PROJECTS }, (_, index) => [
    `${TEAMS[index % TEAMS.length]}-service-${index}`,
    index % 5 === 0
      ? { minCu: 2, maxCu: 4, state: 'active' as const, connections: 3 }
      : { minCu: 0.25, maxCu: 1, state: 'idle' as const },
  ]),
);

/** Two lines of 13 pixels, with the space around them. */
const TWO_LINES = 44;

interface Row {
  text: string;
  isClipped: boolean;
  isBeside: boolean;
  height: number;
}

const READ_ROWS = `[...document.querySelectorAll('#computes tbody tr')].map((row) => {
  const cell = row.querySelector('[data-label="Next change"]');
  const parts = [cell, ...cell.querySelectorAll('*')].filter((one) => getComputedStyle(one).display !== 'inline');
  return {
    text: cell.innerText,
    isClipped: parts.some((one) => one.scrollWidth > one.clientWidth),
    isBeside: cell.getBoundingClientRect().right > document.querySelector('#computes').getBoundingClientRect().right,
    height: row.getBoundingClientRect().height,
  };
})`;

describeWith('chromium', `the status page of ${PROJECTS} projects of ${TEAMS.length} teams`, () => {
  const undo: (() => Promise<unknown>)[] = [];
  let browser: Browser;
  let daemon: TestDaemon;
  beforeAll(async () => {
    const platform = await startTestPlatform(computes);
    undo.push(() => platform.close());
    const folder = await makeFolder({ 'policy.yaml': POLICIES, 'ebb.yaml': SETTINGS });
    undo.push(() => folder.remove());
    const env = { EBB_API_REQUESTS_PER_MINUTE: '20000' };
    daemon = await startTestDaemon({ platform, folder: folder.path, env });
    undo.push(() => daemon.stop());
    browser = await launchBrowser();
    undo.push(() => browser.close());
    const known = async () => {
      const answer = await fetch(`${daemon.url}/api/v1/fleet`);
      expect(await answer.json()).toMatchObject({ known: PROJECTS });
    };
    await vi.waitFor(known, { timeout: 150_000, interval: 500 });
  });
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  it.each(['light', 'dark'] as const)('says in two lines what comes next, at 1,280 pixels, %s', async (colorScheme) => {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 800 } });
    undo.push(() => context.close());
    const page = await context.newPage();
    const rowsOf = async (query: string) => {
      await page.goto(`${daemon.url}/?q=${query}`);
      return page.evaluate<Row[]>(READ_ROWS);
    };
    const [active, idle] = [await rowsOf('active'), await rowsOf('idle')];
    expect(active.filter(({ text }) => text.startsWith('waits until '))).toHaveLength(50);
    expect(idle.filter(({ text }) => text.endsWith('office-hours-of-all-teams'))).toHaveLength(50);
    const isBad = ({ isClipped, isBeside, height }: Row) => isClipped || isBeside || height > TWO_LINES;
    expect([...active, ...idle].filter(isBad)).toEqual([]);
  });
});
