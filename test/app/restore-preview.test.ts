/** What `ebb restore` shows before it asks: of a large fleet first a table by team, of one team each compute. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { DaemonView } from '../../src/app/operator/parts.ts';
import { readingCollection, readingText } from '../../src/app/readings/reading.ts';
import { askAndSend, requestsOfTeam } from '../../src/cli/restore.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aRecord, at, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');
const CHANGED = { minCu: 2, maxCu: 4, suspendTimeoutSeconds: 600 };
const TEAMS = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => `team-${letter}`);
const OF_EACH = 50;
const OWNERS = TEAMS.map((team) => [[`${team}-*`], team] as const);
const ALL = { computes: 'all', owner: 'ann', now: false } as const;

let printed: string;
beforeEach(() => {
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** 300 computes of six teams, that a daemon or only a store knows. Of each team one compute is left to policies, and one goes back in part. */
async function aFleet(known: 'to a daemon' | 'to a store') {
  const clock = createSteppedClock(NOW, () => false);
  const store = createMemoryStore(clock);
  const fleet = createFleet({ clock });
  const policies = compiled();
  for (const team of TEAMS) {
    const name = `${team}-api`;
    const project = { account: 'default', projectId: team, name, regionId: 'aws-eu-central-1', updatedAtMs: NOW };
    const identity = { account: 'default', projectId: team, projectName: name };
    const lease = await store.acquireLease(`project-${team}`, 'before', 1000);
    if (!lease) throw new Error('the lease is held');
    const computes = Array.from({ length: OF_EACH }, (_, index) =>
      aCompute({ ...identity, computeId: `ep-${team}-${index}`, ...CHANGED, state: 'idle' }),
    );
    for (const [index, compute] of computes.entries()) {
      const setBy = { ...(index < 2 && { size: 'night' }), ...(index < 1 && { suspend_timeout: 'night' }) };
      const record = aRecord({ lastApplied: CHANGED, setBy });
      await store.putRecord(team, compute.computeId, record, lease);
      const about = { policies, compute, record, nowMs: NOW, mode: 'enforce' as const, projectBusy: false };
      fleet.putEvaluated({ compute, record, ...evaluate(about) });
    }
    await store.releaseLease(lease);
    const reading = {
      project,
      computes,
      unreadable: [],
      branchesRefused: false,
      includedWrites: new Map(),
      readAtMs: NOW,
    };
    if (known === 'to a store') await store.putDocument(readingCollection(team), team, readingText(reading));
  }
  const view = { fleet, policies: () => policies, owners: () => OWNERS, revision: () => undefined };
  return createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW },
    requestReconciles: async () => {},
    ...(known === 'to a store' ? { owners: OWNERS } : { daemon: view as unknown as DaemonView }),
  });
}

it('of 300 computes is a table by team, and a row for each outcome', async () => {
  const operator = await aFleet('to a store');
  await askAndSend(operator, [ALL], { all: true, yes: true });
  const lines = printed.split('\n');
  expect(lines.slice(0, 3)).toEqual([
    'team    to go back  in part  left to policies  nothing to do',
    'team-a          49        1                 1              0',
    'team-b          49        1                 1              0',
  ]);
  expect(lines).toHaveLength(15);
  expect(printed).toContain('288 computes: ep-team-a-2, ');
  expect(printed).toMatch(
    /\n294 computes to go back, 6 of them in part; 6 left to policies.*\nDetails: .*--owner TEAM\n$/,
  );
});

it.each(['to a daemon', 'to a store'] as const)(
  'of a team has a row for each of its computes, known %s',
  async (known) => {
    const operator = await aFleet(known);
    const requests = await requestsOfTeam(operator, 'team-c', [ALL]);
    const { computes, count } = await askAndSend(operator, requests, { yes: true, isInDetail: true });
    expect(printed.match(/^ep-team-c-\d+ /gm)).toHaveLength(OF_EACH);
    expect(new Set(computes.map(({ project_id }) => project_id))).toEqual(new Set(['team-c']));
    expect(count).toBe(known === 'to a store' ? OF_EACH - 1 : OF_EACH);
    expect(await operator.restore({ ...ALL, preview: true, cancel: true })).toMatchObject({ value: { count } });
  },
);

it('of a team that has no compute is refused, with the teams that have some', async () => {
  const operator = await aFleet('to a store');
  await expect(requestsOfTeam(operator, 'team-x', [ALL])).rejects.toThrow(
    '--owner: nothing belongs to team-x; owners are team-a, team-b, team-c',
  );
});
