import { describe, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type ActivateDeps, advanceRules } from '../../src/app/rollout/activate.ts';
import { takeDelayed, takeReading } from '../../src/app/rollout/reload.ts';
import { createPolicySets, policyProblems } from '../../src/app/rollout/write-permission.ts';
import { compileRules } from '../../src/app/rules.ts';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { Policy, PolicySet } from '../../src/domain/policy/policy.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { ChangedFiles, CostRules, Rules, RulesReading } from '../../src/ports/rules.ts';
import { aSchedule, aWindow, compiled, NO_COSTS, NO_RECEIVERS } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { aSelector } from '../support/selectors.ts';

const freeze: FreezePolicy = {
  ...{ kind: 'freeze', name: 'still', file: 'f.yaml', mode: 'enforce', priority: 0 },
  ...{ select: aSelector({ projects: ['*'] }), at: [aWindow()], allowRaise: false },
};
const signal = new AbortController().signal;

function setOf(hash: string, ...policies: Policy[]) {
  return { ...compiled(...policies).set, hash };
}

function rulesWith(policies: PolicySet, costs: CostRules = NO_COSTS): Rules {
  return {
    policies,
    disruption: {},
    manualChanges: undefined,
    profiles: new Map(),
    verified: new Map(),
    revision: undefined,
    costs,
    teams: [],
    notify: NO_RECEIVERS,
  };
}

/** An observing daemon whose current set has a schedule and a freeze; files are read, and time passes, as a test says. */
function aDaemon() {
  let nowMs = 0;
  const clock = { now: () => nowMs, monotonicMs: () => nowMs } as Clock;
  const log = memoryLog();
  const rules = { current: compileRules(rulesWith(setOf('whole', aSchedule(), freeze))) };
  const deps = {
    ...{ mode: 'observe', rules, clock, fleet: createFleet({ clock }), rhythm: { resyncMs: 0 } },
    telemetry: { log, metrics: { increment() {}, set() {}, clear() {}, observe() {} } },
    sets: createPolicySets({ stages: false, accepted: undefined }),
    store: { projectIds: async () => [] },
    queue: { delayedIds: async () => [] },
    overrides: { async refresh() {} },
  } as unknown as ActivateDeps;
  return {
    deps,
    log,
    current: () => rules.current.policies.set.hash,
    async pass(ms: number) {
      nowMs += ms;
      await takeDelayed(deps, signal);
      await advanceRules(deps, signal);
    },
    /** Reads this after a file was written over, unless `how` says what else has happened. */
    async read(
      policies: RulesReading | ReturnType<typeof setOf>,
      how: Partial<ChangedFiles> & { isRequested?: boolean } = WRITTEN,
    ) {
      const { isRequested = false, ...changes } = how;
      const reading =
        'ok' in policies ? policies : { ok: true as const, rules: rulesWith(policies), warnings: [], needRestart: [] };
      await takeReading(
        deps,
        { ...reading, changes: { inPlace: [], replaced: [], ...changes } },
        { isRequested, signal },
      );
    },
  };
}

const WRITTEN = { inPlace: ['f.yaml'] };
const half = setOf('half', aSchedule());
const whole = setOf('whole', aSchedule(), freeze);
const waits =
  'files were changed in place: the new policies apply once the files are unchanged for 10 s, or at once on SIGHUP';

describe('a file that is changed in place', () => {
  it('counts once it has not changed for 10 s, and says so meanwhile, with what vanishes', async () => {
    const { deps, current, pass, read, log } = aDaemon();
    await read(half);
    await pass(5_000);
    await read(half, {});
    await pass(4_999);
    expect(current()).toBe('whole');
    expect(policyProblems(deps)).toEqual([`${waits}; freeze still is gone`]);
    await pass(1);
    expect(current()).toBe('half');
    expect(policyProblems(deps)).toEqual([]);
    expect(log.lines.map(({ fields }) => Reflect.get(fields, 'event'))).toEqual([
      'ebb.policies_delayed',
      'ebb.policies_loaded',
    ]);
  });

  it('never counts where the rest of the file follows, or what follows is broken', async () => {
    const { deps, current, pass, read } = aDaemon();
    await read(half);
    await pass(9_000);
    await read(whole);
    await pass(60_000);
    expect([current(), deps.sets.delayed]).toEqual(['whole', undefined]);
    await read(half);
    await read({ ok: false, problems: ['f.yaml:3:1: cut off'] });
    await pass(60_000);
    expect(current()).toBe('whole');
  });

  it.each([
    ['again', ['f.yaml']],
    ['with another', ['g.yaml']],
  ])('waits again when it changes %s', async (_title, inPlace) => {
    const { current, pass, read } = aDaemon();
    await read(half);
    await pass(9_000);
    await read(setOf('quarter'), { inPlace });
    await pass(9_999);
    expect(current()).toBe('whole');
    await pass(1);
    expect(current()).toBe('quarter');
  });

  it('waits also where only what a policy says is another, such as a size that was cut off', async () => {
    const { deps, current, pass, read } = aDaemon();
    await read(setOf('cut', aSchedule({ windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 1 } }] }), freeze));
    expect(current()).toBe('whole');
    expect(policyProblems(deps)).toEqual([waits]);
    await pass(10_000);
    expect(current()).toBe('cut');
  });

  it('waits where another file is replaced meanwhile, and no longer where it is itself', async () => {
    const { current, read } = aDaemon();
    await read(half);
    await read(setOf('quarter'), { replaced: ['g.yaml'] });
    expect(current()).toBe('whole');
    await read(setOf('quarter'), { replaced: ['f.yaml'] });
    expect(current()).toBe('quarter');
  });

  it('counts at once where a person asks, and where files were replaced as a whole', async () => {
    for (const how of [{ replaced: ['f.yaml'] }, { isRequested: true }, { ...WRITTEN, isRequested: true }]) {
      const { current, read } = aDaemon();
      await read(half);
      expect(current()).toBe('whole');
      await read(half, how);
      expect(current()).toBe('half');
    }
  });

  it('counts at once where it was there before the daemon', async () => {
    const { current, read } = aDaemon();
    await read(half, {});
    expect(current()).toBe('half');
  });

  it('lets the scope of a team and the settings wait with it', async () => {
    const { deps, pass, read } = aDaemon();
    const teams = [{ name: 'web', projects: ['web-eu'] }];
    const rules = { ...rulesWith(whole), teams, notify: { receivers: [], beforeMs: 60_000 } };
    await read({ ok: true, rules, warnings: [], needRestart: [] });
    await pass(9_999);
    expect(deps.rules.current).toMatchObject({ teams: [], notify: NO_RECEIVERS });
    await pass(1);
    expect(deps.rules.current).toMatchObject({ teams, notify: { beforeMs: 60_000 } });
  });
});

describe('settings of costs', () => {
  it.each<Partial<CostRules>>([
    { prices: { ...NO_COSTS.prices, launch: 0.2 } },
    { owners: [['web-*', 'web']] },
    { plans: new Map([['default', 'scale']]) },
  ])('count at once where nothing else has changed: %j', async (changed) => {
    const { deps, read } = aDaemon();
    const costs = { ...NO_COSTS, ...changed };
    await read({ ok: true, rules: rulesWith(whole, costs), warnings: [], needRestart: [] }, {});
    expect(deps.rules.current.costs).toEqual(costs);
  });
});

describe('the evaluation of all computes by new rules', () => {
  it('is made again for rules that change during it, and after it has failed', async () => {
    const { deps, pass } = aDaemon();
    deps.sets.needsReevaluation = true;
    let evaluations = 0;
    deps.store.projectIds = async () => {
      evaluations += 1;
      if (evaluations === 1) deps.sets.needsReevaluation = true;
      if (evaluations === 2) throw new Error('the store is away');
      return [];
    };
    await pass(1);
    await expect(pass(1)).rejects.toThrow('the store is away');
    await pass(1);
    await pass(1);
    expect(evaluations).toBe(3);
  });
});
