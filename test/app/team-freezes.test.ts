/** What a token of one team freezes: what is in the scope of its team, and nothing else, known or not. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createFleet, type Fleet } from '../../src/app/fleet/fleet.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { type DaemonOperatorDeps, daemonOperator } from '../../src/app/operator/daemon-operator.ts';
import type { DaemonView } from '../../src/app/operator/parts.ts';
import { createOverrides } from '../../src/app/overrides.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import { type Freeze, freezesAt } from '../../src/domain/overrides/freezes.ts';
import { EVERY_COMPUTE, parsedOrAll, parseSelector } from '../../src/domain/policy/selector.ts';
import type { Caller, Operator } from '../../src/ports/operator.ts';
import { aCompute, at, compiled, currentRules, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');
const ASKED = { owner: 'ann', reason: 'release day', forSeconds: 3600, allowRaise: false };
const caller = (...freezes: string[]): Caller => ({ who: 'ann', verified: true, requestId: 'r', freezes });
const WEB = caller('web');

let operator: Operator;
let clock: ReturnType<typeof createSteppedClock>;
let store: ReturnType<typeof createMemoryStore>;
let fleet: Fleet;
let freezes: () => Promise<readonly Freeze[]>;
beforeEach(() => {
  clock = createSteppedClock(NOW, () => false);
  store = createMemoryStore(clock);
  // No compute is known yet, as after a start.
  fleet = createFleet({ clock });
  const daemon = {
    ...{ fleet, mode: 'enforce', policies: () => compiled(), owners: () => [] },
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

describe('a freeze that matches no known compute', () => {
  const select = (projects: string[]) => {
    const parsed = parseSelector({ ...EVERY_COMPUTE, projects }, 'request');
    if (!parsed.ok) throw new Error(parsed.problem);
    return parsed.value;
  };
  const list = (name: string) =>
    fleet.list({ account: 'main', projectId: `p-${name}`, name, regionId: 'r', updatedAtMs: NOW });
  const know = (name: string) => {
    list(name);
    fleet.unlistedAccounts = new Set();
    const compute = aCompute({ projectId: `p-${name}`, projectName: name, computeId: `ep-${name}` });
    const project = { account: 'main', projectId: `p-${name}`, name, regionId: 'r', updatedAtMs: NOW };
    fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: NOW, readAtMonotonicMs: 0 });
    fleet.putEvaluated({ compute } as EvaluatedCompute);
  };
  const asked = (projects: string[], by?: Caller) => operator.freeze({ ...ASKED, select: select(projects) }, by);

  it('is refused to a team, with its scope, and nothing is stored', async () => {
    know('web-a');
    know('shop-a');
    const message =
      /^the scope of team web is web-\*,!web-secret, and no compute in it matches projects=shop-\*: nothing/;
    const error = { code: 'forbidden', message: expect.stringMatching(message) };
    expect(await asked(['shop-*'], WEB)).toEqual({ ok: false, error });
    expect(await freezes()).toEqual([]);
    expect(await asked(['web-*'], WEB)).toMatchObject({ ok: true, value: { covers: 1 } });
  });

  it('is set, and says that not all is read, while a project that it may match is not', async () => {
    know('shop-a');
    list('web-new');
    expect(await asked(['web-n*'], WEB)).toMatchObject({ ok: true, value: { covers: 0, partial: true } });
    // By its name the project that is not read is outside of the scope.
    list('shop-new');
    expect(await asked(['shop-*'], WEB)).toMatchObject({ ok: false, error: { code: 'forbidden' } });
  });

  it('is set, and says so, while the projects of an account are not known', async () => {
    know('shop-a');
    fleet.unlistedAccounts = new Set(['other']);
    expect(await asked(['web-n*'], WEB)).toMatchObject({ ok: true, value: { covers: 0, partial: true } });
  });

  it('is set where it is of nobody, or of all that a team has: new computes may come', async () => {
    know('shop-a');
    expect(await asked(['sohp-*'])).toMatchObject({ ok: true, value: { covers: 0 } });
    const ofAll = await operator.freeze({ ...ASKED, select: 'all' }, WEB);
    expect(ofAll).toMatchObject({ ok: true, value: { covers: 0 } });
    expect(ofAll).not.toHaveProperty('value.partial');
  });
});

it('leaves the freezes of others also when a daemon is asked, which first writes back what the store has lost', async () => {
  const rules = currentRules();
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const deps = { ...REAL, store, mode: 'enforce', fleet, rules, telemetry, overrides: createOverrides({ telemetry }) };
  const storeClock = { excessiveOffsetMs: async () => undefined, lastExcessiveOffsetMs: () => undefined };
  const queue = { add: async () => {} };
  const asked = daemonOperator({ ...deps, clock, storeClock, queue } as unknown as DaemonOperatorDeps);
  await operator.freeze({ ...ASKED, select: 'all' });
  await operator.freeze({ ...ASKED, select: 'all' }, WEB);
  await asked.unfreeze({ id: 'all', owner: 'ann', confirm: 0 }, WEB);
  expect((await freezes()).map(({ team }) => team)).toEqual([undefined]);
  const { entries } = await store.audit({ sinceMs: 0, untilMs: NOW + 1, limit: 1 });
  expect(entries[0]).toMatchObject({ verified: true, requestId: 'r' });
});
