import { expect, it } from 'vitest';
import { type ReadyRoundsDeps, startReadyRounds } from '../../src/app/boundaries/ready-rounds.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { refreshLeaderDecisions } from '../../src/app/rollout/reload.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { compileRules } from '../../src/app/rules.ts';
import { readReadyWaves } from '../../src/app/stored-waves.ts';
import { nextBoundary } from '../../src/domain/decide/boundaries.ts';
import { limitsOf } from '../../src/domain/rate-budget/limits.ts';
import { aCompute, aRecord, aSchedule, at, aWindow, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';

const OPENS_MS = at('2026-03-02T08:00:00Z');
const MINUTE_MS = 60_000;
const SMALL = { minCu: 0.25, maxCu: 0.5 };

const day = (name: string) =>
  aSchedule({
    name,
    windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 }, readyLeadMs: 180_000, readyInWaves: true }],
    otherwise: { size: SMALL },
  });

/** The rounds of a leader over sleeping computes, run by hand. */
function start(computes: number) {
  const time = { ms: OPENS_MS - 31 * MINUTE_MS };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as never);
  const rules = currentRules(day('day'));
  const [store, log] = [memoryDocumentStore(), memoryLog()];
  const leader = { isHeld: true };
  const list = (index: number) => {
    const projectId = `p-${index}`;
    const project = { account: 'default', projectId, name: projectId, regionId: 'r', updatedAtMs: 0 };
    fleet.list(project);
    return project;
  };
  const read = (index: number) => {
    const project = list(index);
    const compute = aCompute({ projectId: project.projectId, computeId: `ep-${index}`, state: 'idle', ...SMALL });
    fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: time.ms, readAtMonotonicMs: time.ms });
    fleet.putEvaluated({ compute, record: aRecord() } as never);
    return compute;
  };
  const known = Array.from({ length: computes }, (_, index) => read(index));
  let round = async () => {};
  startReadyRounds({
    ...{ fleet, rules, store, overrides: { holds: [] }, telemetry: { log } },
    clock: {
      ...clock,
      every(_ms: number, each: () => Promise<void>) {
        round = each;
        return { close: async () => {} };
      },
    },
    leaderLease: { isHeld: () => leader.isHeld },
    limits: limitsOf(700, 0.05),
    runInBackground: (_task: string, each: () => Promise<void>) => each(),
  } as unknown as ReadyRoundsDeps);
  return {
    time,
    fleet,
    rules,
    store,
    log,
    leader,
    list,
    read,
    known,
    roundAt: (ms: number) => roundAt(time, ms, round),
  };
}

async function roundAt(time: { ms: number }, ms: number, round: () => Promise<void>): Promise<void> {
  time.ms = ms;
  await round();
}

it('waves are fixed half an hour before the instant, and every daemon decides by them', async () => {
  const { roundAt: at, store, rules, known, read, log } = start(600);
  await at(OPENS_MS - 31 * MINUTE_MS);
  expect(await readReadyWaves(store)).toBeUndefined();
  await at(OPENS_MS - 30 * MINUTE_MS);
  const fixed = await readReadyWaves(store);
  expect(fixed?.map(({ waves }) => waves.map(({ leadMs, computes }) => [leadMs, computes]))).toEqual([
    [
      [30_000, 220],
      [15_000, 380],
    ],
  ]);
  expect(log.lines.map(({ fields }) => fields)).toMatchObject([{ event: 'ebb.ready_waves', computes: 600 }]);

  const sets = createPolicySets({ stages: false, accepted: undefined });
  await refreshLeaderDecisions({ rules, sets, store });
  expect(sets.needsReevaluation).toBe(true);
  const begins = known.map((compute) => {
    const subject = { policies: rules.current.policies, compute, baseline: undefined };
    return OPENS_MS - (nextBoundary(subject, OPENS_MS - 30 * MINUTE_MS) ?? 0);
  });
  expect(begins.filter((ms) => ms === 30_000)).toHaveLength(220);
  expect(begins.filter((ms) => ms === 15_000)).toHaveLength(380);

  // What appears later changes the wave of nobody.
  for (let index = 600; index < 900; index += 1) read(index);
  await at(OPENS_MS - 20 * MINUTE_MS);
  expect(await readReadyWaves(store)).toEqual(fixed);
  // A store that came back empty takes nothing away.
  await refreshLeaderDecisions({ rules, sets, store: memoryDocumentStore() });
  expect(rules.current.policies.readyWaves).toEqual(fixed);
});

it('other policies have waves of their own, unless some have begun by those that are known', async () => {
  const { roundAt: at, store, rules, read } = start(600);
  await at(OPENS_MS - 30 * MINUTE_MS);
  for (let index = 600; index < 900; index += 1) read(index);
  const reload = (hash: string) => {
    const { policies, ...others } = rules.current;
    rules.current = compileRules({ ...others, policies: { ...policies.set, hash } }, rules.current);
  };
  reload('second');
  await at(OPENS_MS - 10 * MINUTE_MS);
  const second = await readReadyWaves(store);
  expect(second).toMatchObject([{ setHash: 'second', waves: [{ leadMs: 75_000 }, {}, {}] }]);
  reload('third');
  await at(OPENS_MS - 75_000);
  expect(await readReadyWaves(store)).toEqual(second);
});

it('a fleet of which a part is not read yet is waited for, ten minutes at most', async () => {
  const { roundAt: at, store, list } = start(10);
  list(11);
  await at(OPENS_MS - 30 * MINUTE_MS);
  await at(OPENS_MS - 21 * MINUTE_MS);
  expect(await readReadyWaves(store)).toBeUndefined();
  await at(OPENS_MS - 20 * MINUTE_MS);
  expect(await readReadyWaves(store)).toMatchObject([{ waves: [{ computes: 10 }] }]);
  const other = start(10);
  other.list(11);
  await other.roundAt(OPENS_MS - 30 * MINUTE_MS);
  other.read(11);
  await other.roundAt(OPENS_MS - 29 * MINUTE_MS);
  expect(await readReadyWaves(other.store)).toMatchObject([{ waves: [{ computes: 11 }] }]);
});

it('a herd of which nothing is raised is decided once, and again with other policies', async () => {
  const { fleet, rules, store, roundAt } = start(3);
  const usual = rules.current;
  const [window] = day('day').windows;
  const small = aSchedule({ name: 'day', windows: window ? [{ ...window, size: SMALL }] : [] });
  rules.current = currentRules(small).current;
  const { evaluatedComputes } = fleet;
  let asked = 0;
  fleet.evaluatedComputes = () => {
    asked += 1;
    return evaluatedComputes();
  };
  for (const minutes of [30, 29, 28]) await roundAt(OPENS_MS - minutes * MINUTE_MS);
  expect([asked, await readReadyWaves(store)]).toEqual([1, undefined]);
  const { policies, ...others } = usual;
  rules.current = compileRules({ ...others, policies: { ...policies.set, hash: 'raising' } }, rules.current);
  await roundAt(OPENS_MS - 27 * MINUTE_MS);
  expect([asked, (await readReadyWaves(store))?.length]).toEqual([2, 1]);
});

it('nothing is fixed by a daemon that does not lead', async () => {
  const { roundAt: at, store, leader } = start(10);
  leader.isHeld = false;
  await at(OPENS_MS - 20 * MINUTE_MS);
  expect(await readReadyWaves(store)).toBeUndefined();
});
