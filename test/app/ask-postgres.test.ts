import { expect, it } from 'vitest';
import { askPostgres } from '../../src/app/recommend/ask-postgres.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ClientSampler } from '../../src/ports/connections.ts';
import { aCompute } from '../support/builders.ts';

const FROM = Date.parse('2026-03-02T12:00:00Z');
const SECOND = 1_000;

/** Asks every 10 s for 15 min, on a clock that waits for nothing. `states` are those that the control API shows, one a sample. */
async function ask(options: {
  compute?: Partial<Compute>;
  stateAt?: (sample: number) => Compute['state'];
  lastOfOthersMs?: number;
  fails?: (sample: number) => boolean;
}) {
  const { stateAt = () => 'active', lastOfOthersMs = Number.POSITIVE_INFINITY, fails = () => false } = options;
  let nowMs = FROM;
  const asked: number[] = [];
  const compute = aCompute({ state: 'active', suspendTimeoutSeconds: 60, lastActiveAtMs: FROM, ...options.compute });
  const sampler: ClientSampler = {
    texts: new Map(),
    async sample() {
      asked.push(nowMs);
      if (fails(asked.length)) return { ok: false, error: { code: 'unavailable', message: 'it broke' } };
      const atMs = Math.min(nowMs, lastOfOthersMs);
      const times = { startedAtMs: FROM, queryStartedAtMs: atMs, stateSinceMs: atMs };
      const who = {
        pid: 1,
        user: 'app',
        application: 'web',
        kind: 'client',
        state: 'idle',
        query: 'SELECT ?',
      } as const;
      return { ok: true, value: { atMs: nowMs, sessions: [{ ...who, ...times }] } };
    },
  };
  const clock = {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    wait: async (ms: number) => {
      nowMs += ms;
    },
  };
  const result = await askPostgres({
    ...{ compute, sampler, clock, spanMs: 900 * SECOND, everyMs: 10 * SECOND, signal: new AbortController().signal },
    readCompute: async () => ({ ok: true, value: { ...compute, state: stateAt(asked.length) } }),
  });
  return { result, asked: asked.length };
}

it('asks until its time is over', async () => {
  expect(await ask({})).toMatchObject({
    asked: 90,
    result: { ok: true, value: { until: 'time', samples: 90, keptAwakeMs: 0, clients: [{ user: 'app' }] } },
  });
});

it('does not ask a compute that sleeps, or is about to', async () => {
  expect(await ask({ stateAt: () => 'idle' })).toMatchObject({ asked: 0, result: { ok: false } });
  const lastActiveAtMs = FROM - 57 * SECOND;
  expect(await ask({ compute: { lastActiveAtMs } })).toMatchObject({ asked: 0, result: { ok: false } });
  const never = { lastActiveAtMs, suspendTimeoutSeconds: -1 };
  expect(await ask({ compute: never })).toMatchObject({ asked: 90, result: { ok: true } });
});

it('asks no more once it sleeps', async () => {
  const slept = await ask({ stateAt: (sample) => (sample < 5 ? 'active' : 'idle') });
  expect(slept).toMatchObject({ asked: 5, result: { value: { until: 'asleep', samples: 5 } } });
});

it('leaves once nobody else would keep it awake, and says what that cost', async () => {
  const { result, asked } = await ask({ lastOfOthersMs: FROM + 100 * SECOND });
  // The timeout after the others, and one sample that notices it; then the timeout after that sample.
  expect(asked).toBe(18);
  expect(result).toMatchObject({ ok: true, value: { until: 'alone', keptAwakeMs: 70 * SECOND } });
});

it('goes on after a failure, and not after three', async () => {
  expect(await ask({ fails: (sample) => sample % 3 === 0 })).toMatchObject({ result: { value: { until: 'time' } } });
  const broken = await ask({ fails: (sample) => sample > 10 });
  expect(broken).toMatchObject({ asked: 13, result: { value: { until: 'failed', samples: 10 } } });
  expect(await ask({ fails: () => true })).toMatchObject({ asked: 1, result: { ok: false, problem: 'it broke' } });
});
