import { expect, onTestFinished, test } from 'vitest';
import type { ControlApiOptions } from '../../src/adapters/control-api/caller.ts';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { createReadingBudget } from '../../src/adapters/control-api/group-budget.ts';
import type { Exchange, Transport, WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import { createSteppedClock, type SteppedClock } from '../support/simulated/clock.ts';
import { clientOptions, recordingMetrics, wireCompute } from './samples.ts';
import { unwrap } from './support.ts';

const START_MS = Date.UTC(2026, 2, 1);
const DAY_MS = 86_400_000;
const PROJECT = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };
const COMPUTES: Exchange = { kind: 'answer', status: 200, text: JSON.stringify({ endpoints: [wireCompute('ep-1')] }) };

const refusal = (status: number, retryAfter?: string): Exchange => ({
  ...{ kind: 'answer', status, text: '{}' },
  ...(retryAfter !== undefined && { retryAfter }),
});

/** A client without a network, on time that stands still unless the test lets it go on. */
function clientOn(answer: (count: number) => Exchange | Promise<Exchange>, more: Partial<ControlApiOptions> = {}) {
  const clock = createSteppedClock(START_MS, () => false);
  const sent: { atMs: number; request: WireRequest }[] = [];
  const transport: Transport = async (request) => {
    sent.push({ atMs: clock.monotonicMs(), request });
    return answer(sent.length);
  };
  let ids = 0;
  const api = createControlApi(
    clientOptions('http://not.used/', {
      ...{ clock, transport, newId: () => `id-${++ids}`, random: () => 0.5 },
      backoff: { firstMs: 1_000, longestMs: 60_000 },
      ...more,
    }),
  );
  onTestFinished(() => api.close());
  return { api, clock, sent };
}

/** Lets a day pass. */
async function over<T>(clock: SteppedClock, work: Promise<T>): Promise<T> {
  await clock.runTo(clock.now() + DAY_MS);
  return work;
}

test('repeats wait on the clock, with the jitter of the given chance, and the ids are given too', async () => {
  const { api, clock, sent } = clientOn((count) => (count < 4 ? refusal(503) : COMPUTES));
  unwrap(await over(clock, api.listComputes(PROJECT)));
  expect(sent.map(({ atMs, request }) => [atMs, request.requestId])).toEqual([
    [0, 'id-1'],
    [500, 'id-2'],
    [1_500, 'id-3'],
    [3_500, 'id-4'],
  ]);
});

test('Retry-After counts on the clock, as seconds and as a date', async () => {
  const asked = ['7', new Date(START_MS + 20_000).toUTCString()];
  const { api, clock, sent } = clientOn((count) => (count < 3 ? refusal(429, asked[count - 1]) : COMPUTES));
  unwrap(await over(clock, api.listComputes(PROJECT)));
  expect(sent.map(({ atMs }) => atMs)).toEqual([0, 7_000, 20_000]);
});

test('a failure names when the first request that got no answer was sent: not a wait for the rate limit, nor one answered with 429', async () => {
  const clock = createSteppedClock(START_MS, () => false);
  const budget = createReadingBudget({
    alone: true,
    limits: { perMinute: 60, perRouteSecond: 10, jitterMs: 0 },
    clock,
  });
  const { api, sent } = clientOn(() => COMPUTES, {
    ...{ clock, budget },
    transport: async (request) => {
      sent.push({ atMs: clock.monotonicMs(), request });
      return sent.length <= 60 ? COMPUTES : refusal(sent.length === 61 ? 429 : 503, '7');
    },
  });
  const calls = Array.from({ length: 61 }, () => api.listComputes(PROJECT, { deadlineMs: 90_000 }));
  const last = (await over(clock, Promise.all(calls))).at(-1);
  expect(sent.length).toBeGreaterThan(62);
  expect(last).toMatchObject({ ok: false, error: { status: 503, beganAtMonotonicMs: sent[61]?.atMs } });
});

test('a deadline passes on the clock', async () => {
  const transport: Transport = (_request, signal) =>
    new Promise((resolve) => {
      const failure = { kind: 'failure', code: 'timeout', mayHaveArrived: true } as const;
      signal.addEventListener('abort', () => resolve({ ...failure, message: String(signal.reason) }), { once: true });
    });
  const { api, clock } = clientOn(() => COMPUTES, { transport });
  let endedAtMs = 0;
  const result = api.listComputes(PROJECT, { deadlineMs: 10_000 }).finally(() => {
    endedAtMs = clock.monotonicMs();
  });
  expect(await over(clock, result)).toMatchObject({ ok: false, error: { code: 'timeout' } });
  expect(endedAtMs).toBe(10_000);
});

test('a refused key is tried again after waits of the clock', async () => {
  const { api, clock, sent } = clientOn(() => refusal(401), { keyProbes: { firstMs: 60_000, longestMs: 120_000 } });
  for (let minute = 0; minute < 4; minute += 1) {
    await api.listComputes(PROJECT);
    await api.listComputes(PROJECT);
    await clock.runTo(clock.now() + 60_000);
  }
  expect(sent.map(({ atMs }) => atMs)).toEqual([0, 60_000, 180_000]);
});

test('the rate budget waits on the clock', async () => {
  const clock = createSteppedClock(START_MS, () => false);
  const limits = { perMinute: 60, perRouteSecond: 10, jitterMs: 0 };
  const budget = createReadingBudget({ alone: true, limits, clock });
  const sentMs: number[] = [];
  const transport: Transport = async () => {
    sentMs.push(clock.monotonicMs());
    return COMPUTES;
  };
  const { api } = clientOn(() => COMPUTES, { clock, budget, transport });
  const calls = Array.from({ length: 61 }, () => api.listComputes(PROJECT, { deadlineMs: 300_000 }));
  for (const result of await over(clock, Promise.all(calls))) unwrap(result);
  expect(sentMs[59]).toBeLessThan(60_000);
  expect(sentMs[60]).toBeGreaterThanOrEqual(60_000);
});

test('the same seed gives the same run', async () => {
  async function run() {
    const metrics = recordingMetrics();
    const { api, clock, sent } = clientOn((count) => (count % 3 === 0 ? COMPUTES : refusal(503)), { metrics });
    await over(clock, Promise.all(Array.from({ length: 5 }, () => api.listComputes(PROJECT))));
    return { sent, metrics: [...metrics.values] };
  }
  expect(await run()).toEqual(await run());
});

test("the daemon's guard stands before a given transport", async () => {
  const { api, sent } = clientOn(() => ({ kind: 'answer', status: 200, text: '{}' }));
  expect(await api.updateCompute('calm-sea-1', 'ep-1', {})).toMatchObject({ ok: false, error: { code: 'forbidden' } });
  expect(sent).toEqual([]);
  await api.updateCompute('calm-sea-1', 'ep-1', { minCu: 1 });
  expect(sent.map(({ request }) => request.method)).toEqual(['PATCH']);
});

/** A client of a command, and what it says while it waits. */
function patientOn(answer: (count: number) => Exchange) {
  const said: [string, number][] = [];
  const patience = {
    unreachedMs: 10_000,
    onWait: ({ message }: { message: string }, untilMs: number) => void said.push([message, untilMs - START_MS]),
  };
  return { ...clientOn(answer, { patience }), said };
}

const noConnection = (message: string): Exchange => ({
  ...{ kind: 'failure', code: 'unavailable', mayHaveArrived: false, message },
  noConnection: true,
});

test('a command says once that the API can’t be reached, and ends after ten seconds', async () => {
  const { api, clock, sent, said } = patientOn(() => noConnection('nothing there'));
  const failure = { ok: false, error: { message: 'nothing there', noConnection: true } };
  expect(await over(clock, api.listComputes(PROJECT, { deadlineMs: 120_000 }))).toMatchObject(failure);
  expect(said).toEqual([['nothing there', 10_000]]);
  expect(sent.map(({ atMs }) => atMs)).toEqual([0, 500, 1_500, 3_500, 7_500]);
  expect(await over(clock, api.listComputes(PROJECT, { deadlineMs: 120_000 }))).toMatchObject(failure);
  expect({ sent: sent.length, said: said.length }).toEqual({ sent: 6, said: 1 });
});

test('a command waits for an API that answers again, and until the deadline for one that only fails', async () => {
  const back = patientOn((count) => (count < 4 ? noConnection('nothing there') : COMPUTES));
  unwrap(await over(back.clock, back.api.listComputes(PROJECT)));
  const failing = patientOn(() => refusal(503));
  await over(failing.clock, failing.api.listComputes(PROJECT, { deadlineMs: 120_000 }));
  expect(failing.sent.at(-1)?.atMs).toBeGreaterThan(60_000);
  expect(failing.said).toEqual([['HTTP 503', 120_000]]);
  const shortly = patientOn((count) => (count < 3 ? refusal(503) : COMPUTES));
  unwrap(await over(shortly.clock, shortly.api.listComputes(PROJECT)));
  expect(shortly.said).toEqual([]);
});

test('without a person who waits, as in a daemon, nothing ends a call before its deadline', async () => {
  const { api, clock, sent } = clientOn(() => noConnection('nothing there'));
  await over(clock, api.listComputes(PROJECT, { deadlineMs: 120_000 }));
  expect(sent.at(-1)?.atMs).toBeGreaterThan(60_000);
});
