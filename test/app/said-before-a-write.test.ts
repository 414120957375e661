/** What people say between a decision and its write counts, at whichever step they say it. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Operator } from '../../src/ports/operator.ts';
import type { Store } from '../../src/ports/store.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const HOUR_MS = 3_600_000;
const MIDNIGHT = Date.parse('2026-03-02T00:00:00Z');
/** A daemon asks its store fewer times than that between a boundary and the end of its change. */
const STEPS = 24;

/** Another size each hour. */
const EVEN_HOURS = Array.from({ length: 12 }, (_, index) => 2 * index).map((hour) => {
  const [from, to] = [hour, hour + 1].map((one) => `${String(one).padStart(2, '0')}:00`);
  return `{ at: "${from}-${to} UTC", size: 1 }`;
});
const POLICIES = `version: 1
policies:
  - name: by-the-hour
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [${EVEN_HOURS.join(', ')}]
    otherwise: { size: 2 }
`;

/** The store, before whose next calls something can be done: `interruptAhead(n, work)` does the work once, ahead of the n-th call from now. */
function interrupted() {
  let left = -1;
  let work: (() => Promise<void>) | undefined;
  const withStore = (store: Store): Store =>
    new Proxy(store, {
      get(target, name, receiver) {
        const call = Reflect.get(target, name, receiver) as (...args: unknown[]) => unknown;
        if (typeof call !== 'function') return call;
        return async (...args: unknown[]) => {
          left -= 1;
          const now = left === -1 ? work : undefined;
          await now?.();
          return call.apply(target, args);
        };
      },
    });
  return {
    withStore,
    interruptAhead(calls: number, doing: () => Promise<void>) {
      left = calls;
      work = doing;
    },
  };
}

const ask = { owner: 'ann', reason: 'import', forSeconds: 600 };
const orders: [string, (operator: Operator) => Promise<unknown>, number | undefined][] = [
  ['a hold at a size', (operator) => operator.hold({ ...ask, compute: 'ep-shop', size: { minCu: 8, maxCu: 8 } }), 8],
  ['a hold as it is', (operator) => operator.hold({ ...ask, compute: 'ep-shop', freeze: true }), undefined],
  ['a freeze', (operator) => operator.freeze({ ...ask, select: 'all', allowRaise: false }), undefined],
];

describe.each(orders)('%s that is acknowledged between a boundary and its change', (_, order, allowed) => {
  it('is contradicted by no change that it does not name, at whichever step it comes', async () => {
    const { withStore, interruptAhead } = interrupted();
    const daemon = await startSimulatedDaemon({
      ...{ fromMs: MIDNIGHT - HOUR_MS / 2, policies: POLICIES, withStore },
      computes: { shop: { minCu: 4, maxCu: 4 } },
    });
    onTestFinished(() => daemon.close());
    const { clock, platform, operator } = daemon;
    const sizes = async () =>
      (await platform.writes()).map(({ body }) => {
        const { endpoint } = body as { endpoint: { autoscaling_limit_max_cu?: number } };
        return endpoint.autoscaling_limit_max_cu;
      });
    const steps: string[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      const atMs = MIDNIGHT + step * HOUR_MS;
      await clock.runTo(atMs - 1);
      let said: { before: number; inFlight: number } | undefined;
      interruptAhead(step, async () => {
        const answer = (await order(operator)) as { ok: true; value: { in_flight: unknown[] } };
        expect(answer).toMatchObject({ ok: true });
        said = { before: (await sizes()).length, inFlight: answer.value.in_flight.length };
      });
      await clock.runTo(atMs + 5 * 60_000);
      interruptAhead(-1, async () => {});
      if (!said) break;
      const { before: count, inFlight }: { before: number; inFlight: number } = said;
      const after = (await sizes()).slice(count);
      const contradicting = after.filter((size) => size !== allowed);
      steps.push(`${step}: ${after.join()} ${contradicting.length > inFlight ? 'contradicts' : 'ok'}`);
      await clock.runTo(atMs + HOUR_MS / 2);
    }
    expect(steps.length).toBeGreaterThan(8);
    expect(steps.filter((step) => step.endsWith('contradicts'))).toEqual([]);
  });
});
