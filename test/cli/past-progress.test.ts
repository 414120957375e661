import { expect, it } from 'vitest';
import { showProgress } from '../../src/cli/past/progress.ts';

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
  return { written, readAt, end: progress.end };
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

it('writes a line each ten seconds where there is no terminal', () => {
  const { written, readAt, end } = progressOn(false);
  for (let second = 0; second <= 35; second += 1) readAt(1000 * second, second);
  end();
  expect(written).toEqual([10, 20, 30].map((read) => `reading the fleet: ${read} of 300 projects\n`));
});
