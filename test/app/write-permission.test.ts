import { describe, expect, it } from 'vitest';
import { createStoreClock } from '../../src/app/group/clock-skew.ts';
import { currentIdentity } from '../../src/app/rollout/generations.ts';
import {
  cannotWrite,
  checkWritePermission,
  createPolicySets,
  type PolicySets,
  type WriteBlockDeps,
  type WritePermissionDeps,
} from '../../src/app/rollout/write-permission.ts';
import { DECISION_VERSION } from '../../src/domain/evaluate/decision-version.ts';
import type { Generation } from '../../src/ports/store.ts';
import { aSchedule, currentRules } from '../support/builders.ts';
import { createMemoryGenerations } from '../support/memory-generations.ts';
import { memoryLog } from '../support/memory-log.ts';

const RULES = currentRules(aSchedule());
const OWN = currentIdentity({ sets: { decisionVersion: DECISION_VERSION } as PolicySets, rules: RULES });

/** An enforcing daemon with the set `test` as generation 7, beside the current set of the store. */
function aDaemon({ current, aheadMs = 0 }: { current?: Generation; aheadMs?: number } = {}) {
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const held = { current };
  const storeClock = createStoreClock({
    store: { timeMs: async () => 1_000_000 },
    clock: { monotonicMs: () => 0 },
    machineMs: () => 1_000_000 + aheadMs,
    telemetry,
  });
  const context = {
    ...{ mode: 'enforce', telemetry, storeClock, rules: RULES },
    sets: { ...createPolicySets({ stages: true, accepted: undefined }), generation: 7 },
    store: createMemoryGenerations(() => 0, held),
    storeWatch: {
      async check() {
        held.current ??= { number: 7, ...OWN };
      },
    },
  } as unknown as WritePermissionDeps & WriteBlockDeps;
  return { context, held, log: telemetry.log };
}

const codeOf = async (deps: WritePermissionDeps) => {
  const leave = await checkWritePermission(deps);
  return leave.ok ? 'ok' : leave.reason.code;
};

describe('write permission', () => {
  it('is given to a daemon with the current set, whatever its number was before', async () => {
    expect(await codeOf(aDaemon({ current: { number: 7, ...OWN } }).context)).toBe('ok');
    const { context } = aDaemon({ current: { number: 9, ...OWN } });
    expect(await codeOf(context)).toBe('ok');
    expect(context.sets.generation).toBe(9);
  });

  it('is refused to a daemon with an older set than another daemon has, which is logged once', async () => {
    const { context, held, log } = aDaemon({ current: { number: 8, setHash: 'newer' } });
    expect([await codeOf(context), await codeOf(context)]).toEqual(['superseded', 'superseded']);
    expect(log.lines).toHaveLength(1);
    held.current = { number: 9, ...OWN };
    expect(await codeOf(context)).toBe('ok');
    expect(log.lines.map(({ fields }) => fields)).toMatchObject([
      { event: 'ebb.superseded', hash: 'newer', generation: 8 },
      { event: 'ebb.policies_current' },
    ]);
  });

  it('is given beside a daemon of 0.1.0 with the same policies, which says nothing of settings: this one says it', async () => {
    const { context, held } = aDaemon({ current: { number: 8, setHash: OWN.setHash } });
    expect(await codeOf(context)).toBe('ok');
    expect(held.current).toEqual({ number: context.sets.generation, ...OWN });
    expect(context.sets.generation).toBeGreaterThan(8);
  });

  it('stays refused where another daemon has superseded the settings of this one, whatever one of 0.1.0 registers', async () => {
    const { context, held } = aDaemon({ current: { ...OWN, number: 8, decisionHash: 'other settings' } });
    expect(await codeOf(context)).toBe('superseded');
    held.current = { number: 9, setHash: OWN.setHash };
    expect(await codeOf(context)).toBe('superseded');
    expect(held.current).toEqual({ number: 9, setHash: OWN.setHash });
  });

  it('is given again once a store that came back empty has got back its generation', async () => {
    expect(await codeOf(aDaemon().context)).toBe('ok');
  });

  it('is refused while no set is current, in observe mode, and while the clock is wrong', async () => {
    const current = { number: 7, ...OWN };
    const staged = aDaemon({ current });
    staged.context.sets.generation = undefined;
    expect(await codeOf(staged.context)).toBe('staged');
    const observing = aDaemon({ current });
    observing.context.mode = 'observe';
    expect(await codeOf(observing.context)).toBe('observe');
    const early = aDaemon({ current, aheadMs: 60_000 });
    expect(await codeOf(early.context)).toBe('clock_off');
    expect(cannotWrite(early.context)).toBe('clock_off');
  });
});
