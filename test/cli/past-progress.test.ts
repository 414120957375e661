import { expect, it, onTestFinished } from 'vitest';
import type { OnProgress } from '../../src/app/fleet/read-fleet.ts';
import { showProgress } from '../../src/cli/past/progress.ts';
import { planOnce, readFleetUsage, readForForecast } from '../../src/compose/situation.ts';
import type { PolicySet } from '../../src/domain/policy/policy.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';

function progressOn(isTTY: boolean) {
  const written: string[] = [];
  let nowMs = 0;
  const progress = showProgress(
    { isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 },
    () => nowMs,
  );
  const readAt = (ms: number, projectsRead: number) => {
    nowMs = ms;
    progress.fleet({ projectsRead, projects: 300 });
  };
  const historyAt = (ms: number, hours: number) => {
    nowMs = ms;
    progress.history({ doneMs: hours * 3_600_000, allMs: 14 * 86_400_000 });
  };
  return { written, readAt, historyAt, end: progress.end };
}

it('rewrites one line of a terminal, from a second on', () => {
  const { written, readAt, end } = progressOn(true);
  for (const [index, ms] of [0, 999, 1000, 1100].entries()) readAt(ms, index);
  end();
  expect(written).toEqual([
    ...['2', '3'].map((read) => `\r\u001b[Kreading the fleet: ${read} of 300 projects`),
    '\r\u001b[K',
  ]);
});

it('shows how much of a past has been lived through', () => {
  const { written, historyAt } = progressOn(true);
  for (const [index, hours] of [23, 24, 60].entries()) historyAt(1000 + index, hours);
  expect(written).toEqual([0, 1, 2].map((days) => `\r\u001b[Ksimulating ${days} of 14 days of history`));
});

it('writes a line each ten seconds where there is no terminal', () => {
  const { written, readAt, end } = progressOn(false);
  for (let second = 0; second <= 35; second += 1) readAt(1000 * second, second);
  end();
  expect(written).toEqual([10, 20, 30].map((read) => `reading the fleet: ${read} of 300 projects\n`));
});

/** What commands read the fleet with. */
const READINGS = {
  'plan, explain': planOnce,
  'forecast, diff, savings': readForForecast,
  'cost, usage': readFleetUsage,
};

it.each(Object.entries(READINGS))('is told by what %s read the fleet with', async (_, read) => {
  const platform = await startTestPlatform({ one: {}, two: {} });
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey };
  const settings = readSettings({ env, cwd: folder.path });
  if (!settings.ok) throw new Error(settings.problems.join('\n'));
  const told: Parameters<OnProgress>[0][] = [];
  const policies: PolicySet = { hash: 'test', policies: [] } as unknown as PolicySet;
  const reading = await read({
    ...{ settings: settings.settings, policies, mode: 'observe', selectsByBranch: false, nowMs: Date.now() },
    onProgress: (progress) => told.push(progress),
  });
  expect(reading).toMatchObject({ ok: true });
  expect(told.at(-1)).toEqual({ projectsRead: 2, projects: 2, computes: 2 });
});
