/** Debian's Chromium without a window, and what its pages are checked for. */
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';
import { programPath } from './programs.ts';

/** `--no-sandbox`: CI runs as root, and the browser sees only pages of these tests. A busy machine takes long to start it. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: programPath('chromium'), args: ['--no-sandbox'], timeout: 150_000 });
}

/** What axe finds wrong with a page as it is now: a line for each element. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run(document, {resultTypes: ["violations"]})');
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`),
  );
}
