import { describe, expect, it } from 'vitest';
import { callerOf } from '../../src/adapters/http/tokens.ts';
import { setHold } from '../../src/app/operator/holds.ts';
import { parseGrants } from '../../src/ports/roles.ts';
import { at, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOON = at('2026-03-02T12:00:00Z');
const MOST = 1000;

function callerWith(roles: string) {
  const context = { get: () => 'r-1', req: { header: () => undefined } };
  const grants = parseGrants(roles);
  return callerOf({ name: 'ann', ...(grants && { grants }) }, context as unknown as Parameters<typeof callerOf>[1]);
}

function operator() {
  const store = createMemoryStore(createSteppedClock(NOON, () => false));
  const parts = {
    ...{ store, log: memoryLog(), now: async () => NOON, requestReconciles: async () => {} },
    ...{ ...REAL, holder: 'test' },
  };
  const hold = (roles: string) =>
    setHold(
      { ...parts, caller: callerWith(roles) },
      { compute: 'p-one/ep-one', owner: 'ann', reason: 'import', forSeconds: 60, freeze: true },
    );
  const fill = async (teams: readonly string[]) => {
    for (let index = 0; index < MOST; index += 1) {
      const place = { projectId: 'p-one', computeId: 'ep-one', owner: 'ann', reason: 'import' };
      const times = { createdAtMs: NOON, expiresAtMs: NOON + 1000 };
      await store.putHold({ id: `h-${index}`, ...place, ...times, freeze: true, teams });
    }
  };
  return { store, hold, fill };
}

describe('the holds of a team', () => {
  it('are limited: the rest of the store stays for other teams, and for those without a team', async () => {
    const { store, hold, fill } = operator();
    await fill(['web']);
    const message = 'team web has 1000 holds, the most that a team may have: release some';
    expect(await hold('read, operate web')).toEqual({ ok: false, error: { code: 'full', message } });
    expect(await hold('operate api, operate web')).toMatchObject({ ok: false, error: { code: 'full', message } });
    expect(await hold('operate api')).toMatchObject({ ok: true });
    expect(await hold('operate')).toMatchObject({ ok: true });
    expect(await hold('operate, operate web')).toMatchObject({ ok: true });
    await store.deleteHold('h-0');
    expect(await hold('operate web')).toMatchObject({ ok: true });
    expect(await hold('operate web')).toMatchObject({ ok: false });
  });

  it('count by token, and the audit does not name that', async () => {
    const { store, hold } = operator();
    await hold('operate web, operate api');
    expect(await store.holds(NOON)).toMatchObject([{ teams: ['web', 'api'] }]);
    const [entry] = await store.history({ limit: 1 });
    expect(entry).toMatchObject({ kind: 'hold', who: 'ann' });
    expect(entry).not.toHaveProperty('teams');
  });
});
