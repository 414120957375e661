import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type LeaderRefreshDeps, startLeaderRefresh } from '../../src/app/group/leader-refresh.ts';
import { aCompute, aRecord, aSchedule, currentRules } from '../support/builders.ts';

const NOON = Date.parse('2026-11-23T12:00:00Z');

/** A daemon of a group that has read one compute, and what its rounds evaluate it by. */
function aDaemon(isLeader: boolean) {
  const time = { ms: NOON };
  const rounds: (() => Promise<void>)[] = [];
  const clock = {
    ...{ now: () => time.ms, monotonicMs: () => time.ms },
    every(_ms: number, round: () => Promise<void>) {
      rounds.push(round);
      return { close: async () => {} };
    },
  };
  const fleet = createFleet({ clock } as never);
  const compute = aCompute();
  const { projectId, computeId } = compute;
  const project = { account: 'default', projectId, name: 'p', regionId: 'r', updatedAtMs: 0 };
  fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: NOON, readAtMonotonicMs: NOON });
  const rules = currentRules(aSchedule({ name: 'first' }));
  const deps = {
    ...{ clock, fleet, rules, mode: 'enforce', rhythm: { resyncMs: 300_000 } },
    ...{ overrides: { holds: [], freezes: [], refresh: async () => {} } },
    ...{ samples: { historyOf: () => [] }, slots: { isAtOnceReached: () => false, isAtMostReached: () => false } },
    store: { records: async () => new Map([[computeId, aRecord()]]) },
    leaderLease: { isAlone: false, isHeld: () => isLeader },
    runInBackground: (_task: string, work: () => Promise<void>) => work(),
  } as unknown as LeaderRefreshDeps;
  startLeaderRefresh(deps);
  return {
    rules,
    round: async () => {
      time.ms += 2_000;
      for (const one of rounds.slice(0, 2)) await one();
      return fleet.latestEvaluation(computeId)?.decision.deciders.size?.policy?.name;
    },
  };
}

it.each([true, false])(
  'whoever leads (this daemon: %s), a new policy set is soon what all computes are shown by',
  async (isLeader) => {
    const { rules, round } = aDaemon(isLeader);
    expect(await round()).toBe('first');
    rules.current = currentRules(aSchedule({ name: 'second' })).current;
    expect(await round()).toBe('second');
  },
);
