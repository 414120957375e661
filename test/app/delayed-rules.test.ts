import { describe, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type ActivateDeps, advanceRules } from '../../src/app/rollout/activate.ts';
import { takeReading } from '../../src/app/rollout/take-reading.ts';
import { createPolicySets, policyProblems } from '../../src/app/rollout/write-permission.ts';
import { compileRules } from '../../src/app/rules.ts';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { Policy, PolicySet } from '../../src/domain/policy/policy.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { CostRules, Rules, RulesReading } from '../../src/ports/rules.ts';
import { aSchedule, aWindow, compiled, NO_COSTS, NO_RECEIVERS } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const freeze: FreezePolicy = {
  ...{ kind: 'freeze', name: 'still', file: 'f.yaml', mode: 'enforce', priority: 0 },
  ...{ select: { projects: ['*'], minAgeMs: 0 }, at: [aWindow()], allowRaise: false },
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
      await advanceRules(deps, signal);
    },
    async read(policies: RulesReading | ReturnType<typeof setOf>, { replaced = false, isAsked = false } = {}) {
      const rules = 'ok' in policies ? undefined : rulesWith(policies);
      const reading = rules
        ? { ok: true as const, rules, warnings: [], needRestart: [], replaced }
        : (policies as RulesReading);
      await takeReading(deps, reading, { isAsked, signal });
    },
  };
}

const half = setOf('half', aSchedule());
const whole = setOf('whole', aSchedule(), freeze);

describe('a set in which a freeze has vanished', () => {
  it('counts once it has not changed for 10 s, and says so meanwhile', async () => {
    const { deps, current, pass, read, log } = aDaemon();
    await read(half);
    await pass(5_000);
    await read(half);
    await pass(4_999);
    expect(current()).toBe('whole');
    expect(policyProblems(deps)).toEqual([
      'freeze still is gone: the new policies count once their files have not changed for 10 s, or at once on SIGHUP',
    ]);
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
    expect([current(), deps.sets.candidate]).toEqual(['whole', undefined]);
    await read(half);
    await read({ ok: false, problems: ['f.yaml:3:1: cut off'] });
    await pass(60_000);
    expect(current()).toBe('whole');
  });

  it('waits again when it changes again', async () => {
    const { current, pass, read } = aDaemon();
    await read(half);
    await pass(9_000);
    await read(setOf('quarter'));
    await pass(9_999);
    expect(current()).toBe('whole');
    await pass(1);
    expect(current()).toBe('quarter');
  });

  it('counts at once where its files were replaced as a whole, or a person asks', async () => {
    for (const how of [{ replaced: true }, { isAsked: true }]) {
      const { current, read } = aDaemon();
      await read(half);
      expect(current()).toBe('whole');
      await read(half, how);
      expect(current()).toBe('half');
    }
  });
});

describe('a set in which nothing has vanished', () => {
  it('counts at once', async () => {
    const { current, read } = aDaemon();
    await read(setOf('more', aSchedule(), freeze, aSchedule({ name: 'more' })));
    expect(current()).toBe('more');
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
    await read({ ok: true, rules: rulesWith(whole, costs), warnings: [], needRestart: [], replaced: false });
    expect(deps.rules.current.costs).toEqual(costs);
  });
});
