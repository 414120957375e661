/** What a token of one team freezes: what is in the scope of its team, and nothing else, known or not. */
import { beforeEach, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { DaemonView } from '../../src/app/operator/parts.ts';
import { type Freeze, freezesAt } from '../../src/domain/overrides/freezes.ts';
import { EVERY_COMPUTE, parsedOrAll, parseSelector } from '../../src/domain/policy/selector.ts';
import type { Caller, Operator } from '../../src/ports/operator.ts';
import { aCompute, at, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');
const ASKED = { owner: 'ann', reason: 'release day', forSeconds: 3600, allowRaise: false };
const caller = (...freezes: string[]): Caller => ({ who: 'ann', verified: true, requestId: 'r', freezes });
const WEB = caller('web');

let operator: Operator;
let freezes: () => Promise<readonly Freeze[]>;
beforeEach(() => {
  const clock = createSteppedClock(NOW, () => false);
  const store = createMemoryStore(clock);
  // No compute is known yet, as after a start.
  const daemon = {
    ...{ fleet: createFleet({ clock }), mode: 'enforce', policies: () => compiled(), owners: () => [] },
    ...{ teams: () => [{ name: 'web', projects: ['web-*', '!web-secret'] }], revision: () => undefined },
  } as unknown as DaemonView;
  operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW, daemon },
    requestReconciles: async () => {},
  });
  freezes = () => store.freezes(NOW);
});

it('leaves room for others: a team has 20', async () => {
  const asked = (by?: Caller) => operator.freeze({ ...ASKED, select: 'all' }, by);
  for (let count = 0; count < 20; count += 1) expect(await asked(WEB)).toMatchObject({ ok: true });
  expect(await asked(WEB)).toMatchObject({
    ok: false,
    error: { code: 'full', message: expect.stringMatching(/^team web has 20 freezes/) },
  });
  expect(await asked()).toMatchObject({ ok: true });
});

it('is stored with a scope that a request could not have, and is no more than that when it is read', () => {
  const scope = ['team-????????????????-a', 'team-????????????????-b', 'team-????????????????-c'];
  expect(parseSelector({ projects: scope, minAgeMs: 0 }, 'request').ok).toBe(false);
  expect(parsedOrAll({ minAgeMs: 0, scope })).toEqual({ minAgeMs: 0, scope });
});

const named = (projectName: string) => aCompute({ projectName, projectId: projectName });
const frozen = async (...names: string[]) => {
  const known = await freezes();
  return names.filter((name) => freezesAt(known, named(name), NOW).length > 0);
};

it('is what its team has, also of all and before any compute is known', async () => {
  expect(await operator.freeze({ ...ASKED, select: 'all' }, WEB)).toMatchObject({ ok: true, value: { team: 'web' } });
  expect(await frozen('web-shop', 'web-secret', 'api')).toEqual(['web-shop']);
});

it('is what was selected of that', async () => {
  const select = parseSelector({ ...EVERY_COMPUTE, projects: ['web-a', 'api'] }, 'request');
  if (!select.ok) throw new Error(select.problem);
  await operator.freeze({ ...ASKED, select: select.value }, WEB);
  expect(await frozen('web-a', 'web-b', 'api')).toEqual(['web-a']);
});

it('ends with those of its team, and leaves the others', async () => {
  await operator.freeze({ ...ASKED, select: 'all' });
  await operator.freeze({ ...ASKED, select: 'all' }, WEB);
  expect(await operator.unfreeze({ id: 'all', owner: 'ann', confirm: 0 }, WEB)).toMatchObject({ ok: true });
  expect((await freezes()).map(({ team }) => team)).toEqual([undefined]);
  const [other] = await freezes();
  const refused = await operator.unfreeze({ id: other?.id ?? '', owner: 'ann', confirm: 0 }, WEB);
  expect(refused).toMatchObject({ ok: false, error: { code: 'not_found' } });
});

it('is one line of what to do for a token of several teams, and for a team that is gone', async () => {
  const asked = (by: Caller) => operator.freeze({ ...ASKED, select: 'all' }, by);
  expect(await asked(caller('web', 'api'))).toMatchObject({
    ok: false,
    error: { message: expect.stringMatching(/use a token for each/) },
  });
  expect(await asked(caller('api'))).toMatchObject({ ok: false, error: { message: 'teams of ebb.yaml has no api' } });
  expect(await freezes()).toEqual([]);
});
