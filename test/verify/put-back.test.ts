/** What was there comes back: at the end, when it is stopped, and after a kill at each request. */
import { describe, expect, it } from 'vitest';
import { refusalOf, type Target } from '../../src/app/verify/target.ts';
import { ACCOUNT_FACTS, FACT_NAMES } from '../../src/domain/compute/account-facts.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { type Hook, reportOf, START_MS, serviceOf, signalled, type Truth } from './service.ts';

const USUAL = Object.fromEntries(FACT_NAMES.map((fact) => [fact, ACCOUNT_FACTS[fact][0]])) as Truth;
const BEFORE = { minCu: 0.5, maxCu: 2, suspendTimeoutSeconds: 240 };
const WRITES = ['PATCH', 'POST'];

/** The process dies at the request with this number: it is sent or not, and nothing comes back ever. */
function killedAt(number: number, isSent: boolean, die: () => void): Hook {
  let seen = 0;
  return async (_request, send) => {
    seen += 1;
    if (seen < number) return send();
    if (seen === number && isSent) await send();
    die();
    return new Promise(() => {});
  };
}

async function numbersOfWrites(): Promise<number[]> {
  const methods: string[] = [];
  const service = serviceOf(USUAL, BEFORE);
  await service.verify({
    hook: (request, send) => {
      methods.push(request.method);
      return send();
    },
  });
  return methods.flatMap((method, at) => (WRITES.includes(method) ? [at + 1] : []));
}

describe('killed', () => {
  it('before and after each write, and between: --restore puts back what was there', async () => {
    const writes = await numbersOfWrites();
    expect(writes.length).toBeGreaterThan(4);
    const points = [...new Set([1, 2, 3, ...writes.flatMap((at) => [at, at + 1, at + 3])])];
    for (const point of points)
      for (const isSent of [false, true]) {
        const service = serviceOf(USUAL, BEFORE);
        const dead = signalled();
        void service.verify({ hook: killedAt(point, isSent, dead.resolve) }).catch(() => {});
        await service.live(dead.promise);
        expect(await service.restore(), `request ${point}`).toBe(true);
        expect(service.settings(), `request ${point}`).toEqual(BEFORE);
        expect(service.keeper.kept()).toBeUndefined();
      }
  });

  it('keeps what was there before the first write', async () => {
    const [first = 0] = await numbersOfWrites();
    const service = serviceOf(USUAL, BEFORE);
    const dead = signalled();
    void service.verify({ hook: killedAt(first, false, dead.resolve) }).catch(() => {});
    await service.live(dead.promise);
    expect(service.keeper.kept()).toMatchObject({ settings: BEFORE });
    const again = await service.verify();
    expect(again).toMatchObject({ ok: false, problem: expect.stringContaining('--restore') });
  });
});

it('stopped: puts back what was there, and gives no report', async () => {
  const service = serviceOf(USUAL, BEFORE);
  const stopping = new AbortController();
  service.time.at(START_MS + 25_000, () => stopping.abort(new Error('stopped')));
  const result = await service.verify({ signal: stopping.signal });
  expect(result).toEqual({ ok: false, problem: expect.stringContaining('stopped') });
  expect(service.settings()).toEqual(BEFORE);
  expect(service.keeper.kept()).toBeUndefined();
});

it('without a database, what needs a client is not observable', async () => {
  const report = reportOf(await serviceOf(USUAL).verify({ database: false }));
  const verdicts = Object.fromEntries(report.facts.map(({ fact, verdict }) => [fact, verdict]));
  expect(verdicts).toMatchObject({
    ...{ idle_resize: 'as_expected', list_updated_at: 'as_expected' },
    ...{ timeout_change: 'not_observable', last_active: 'not_observable', restart_drops: 'not_observable' },
  });
});

it.each(['free', 'launch'] as const)(
  'on the plan %s nothing is wrong, and what the plan forbids is not observable',
  async (plan) => {
    const service = serviceOf(USUAL, { suspendTimeoutSeconds: 300, state: 'active' }, plan);
    const report = reportOf(await service.verify());
    const timeout = report.facts.find(({ fact }) => fact === 'timeout_change');
    expect(timeout?.verdict).toBe(plan === 'free' ? 'not_observable' : 'as_expected');
    expect(report.facts.filter(({ verdict }) => verdict === 'differs')).toEqual([]);
    expect(report.facts.find(({ fact }) => fact === 'idle_resize')?.verdict).toBe('as_expected');
  },
);

describe('a project is refused', () => {
  const compute = { minCu: 0.25, maxCu: 2, type: 'read_write', disabled: false } as Compute;
  const target: Target = {
    ...{ name: 'ebb-verify-1', createdAtMs: START_MS - 1, storageBytes: 31_000_000, branches: 1, computes: [compute] },
  };
  it.each<[string, Partial<Target>]>([
    ['another name', { name: 'shop' }],
    ['older than a week', { createdAtMs: START_MS - 8 * 86_400_000 }],
    ['with data', { storageBytes: 200_000_000 }],
    ['two branches', { branches: 2 }],
    ['two computes', { computes: [compute, compute] }],
    ['a large compute', { computes: [{ ...compute, maxCu: 4 }] }],
    ['a replica', { computes: [{ ...compute, type: 'read_only' }] }],
  ])('%s', (_name, changes) => {
    expect(refusalOf(target, START_MS)).toBeUndefined();
    expect(refusalOf({ ...target, ...changes }, START_MS)).toEqual(expect.any(String));
  });
});
