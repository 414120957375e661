import { setMaxListeners } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { createReadingBudget } from '../../src/adapters/control-api/group-budget.ts';
import type { Exchange, WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import { DEFAULT_RATE_LIMITS } from '../../src/domain/rate-budget/limits.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { clientOptions, KEY } from './samples.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const COMPUTES: Exchange = { kind: 'answer', status: 200, text: JSON.stringify({ endpoints: [] }) };
const refusal = (status: number): Exchange => ({ kind: 'answer', status, text: '{}' });

const accountOf = (projectId: string) => (projectId.startsWith('blue') ? 'blue' : 'main');

/** A client under the documented limits that reads projects as the daemon does: for 5 s, and 5 s later again if that failed. */
function readers(names: readonly string[], answer: (request: WireRequest, atMs: number) => Exchange) {
  const clock = createSteppedClock(Date.UTC(2026, 2, 1), () => false);
  const accounts = new Set(names.map(accountOf));
  const sent: { atMs: number; path: string }[] = [];
  const api = createControlApi(
    clientOptions('http://not.used/', {
      accounts: [...accounts].map((name) => ({ name, key: () => KEY })),
      backoff: { firstMs: 200, longestMs: 5_000 },
      ...{ clock, random: () => 0.5, budget: createReadingBudget({ alone: true, limits: DEFAULT_RATE_LIMITS, clock }) },
      transport: async (request) => {
        sent.push({ atMs: clock.monotonicMs(), path: request.path });
        return answer(request, clock.monotonicMs());
      },
    }),
  );
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal);
  const readAtMs = new Map<string, number>();
  async function read(projectId: string): Promise<void> {
    const project = { account: accountOf(projectId), projectId, name: projectId };
    while (!stopped.signal.aborted && !readAtMs.has(projectId)) {
      const result = await api.listComputes(project, { deadlineMs: 5 * SECOND_MS, signal: stopped.signal });
      if (result.ok) readAtMs.set(projectId, clock.monotonicMs());
      else await clock.wait(5 * SECOND_MS);
    }
  }
  for (const name of names) void read(name);
  onTestFinished(async () => {
    stopped.abort();
    await api.close();
  });
  const sentFrom = (fromMs: number, untilMs: number) => sent.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs);
  return { api, clock, sentFrom, readAtMs, runTo: (ms: number) => clock.runTo(Date.UTC(2026, 2, 1) + ms) };
}

const MANY = Array.from({ length: 300 }, (_, index) => `calm-sea-${index}`);

test.each([503, 500])(
  'in an outage (%s) a tenth of the limit is used, and what waits is read after it',
  async (status) => {
    const endMs = 5 * MINUTE_MS;
    const { api, sentFrom, readAtMs, runTo } = readers(MANY, (_, atMs) => (atMs < endMs ? refusal(status) : COMPUTES));
    await runTo(endMs);
    for (let minute = 1; minute < 5; minute += 1) {
      const count = sentFrom(minute * MINUTE_MS, (minute + 1) * MINUTE_MS).length;
      expect(count).toBeGreaterThan(30);
      expect(count).toBeLessThanOrEqual(70);
    }
    await runTo(endMs + 2 * SECOND_MS);
    let isGranted = false;
    const raise = { account: 'main', priority: 'raise', signal: new AbortController().signal } as const;
    void api.permit('updateCompute', raise).then(() => {
      isGranted = true;
    });
    await runTo(endMs + 3 * SECOND_MS);
    expect(isGranted).toBe(true);
    await runTo(endMs + 20 * SECOND_MS);
    expect(readAtMs.size).toBe(MANY.length);
  },
);

test('an outage of one account does not slow another', async () => {
  const { readAtMs, runTo } = readers([...MANY, 'blue-1', 'blue-2'], ({ path }) =>
    path.includes('blue') ? COMPUTES : refusal(503),
  );
  await runTo(SECOND_MS);
  expect([...readAtMs.keys()]).toEqual(['blue-1', 'blue-2']);
});

test('one project that always fails slows no others, and two do for a moment only', async () => {
  const { api, clock, runTo } = readers(['broken-1', 'broken-2'], ({ path }) =>
    path.includes('broken') ? refusal(500) : COMPUTES,
  );
  await runTo(MINUTE_MS);
  const askedAtMs = clock.monotonicMs();
  let tookMs = Number.NaN;
  void api.listComputes({ account: 'main', projectId: 'calm-sea-1', name: 'calm' }).then(() => {
    tookMs = clock.monotonicMs() - askedAtMs;
  });
  await runTo(MINUTE_MS + 10 * SECOND_MS);
  expect(tookMs).toBeLessThan(3 * SECOND_MS);
});

test('a change is not held back', async () => {
  const { api, clock, sentFrom, runTo } = readers(MANY, () => refusal(503));
  await runTo(2 * MINUTE_MS);
  void api.updateCompute('calm-sea-1', 'ep-1', { minCu: 1, maxCu: 2 }, { deadlineMs: 500 });
  await runTo(2 * MINUTE_MS + SECOND_MS / 2);
  expect(sentFrom(2 * MINUTE_MS, clock.monotonicMs() + 1).some(({ path }) => path.endsWith('/ep-1'))).toBe(true);
});
