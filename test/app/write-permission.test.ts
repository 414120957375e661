import { describe, expect, it } from 'vitest';
import { createStoreClock } from '../../src/app/group/clock-skew.ts';
import {
  cannotWrite,
  checkWritePermission,
  createPolicySets,
  type WriteBlockDeps,
  type WritePermissionDeps,
} from '../../src/app/rollout/write-permission.ts';
import type { Generation } from '../../src/ports/store.ts';
import { aSchedule, currentRules } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

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
    ...{ mode: 'enforce', telemetry, storeClock, rules: currentRules(aSchedule()) },
    sets: { ...createPolicySets({ stages: true, accepted: undefined }), generation: 7 },
    store: { generation: async () => held.current },
    storeWatch: {
      async check() {
        held.current ??= { number: 7, setHash: 'test' };
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
    expect(await codeOf(aDaemon({ current: { number: 7, setHash: 'test' } }).context)).toBe('ok');
    const { context } = aDaemon({ current: { number: 9, setHash: 'test' } });
    expect(await codeOf(context)).toBe('ok');
    expect(context.sets.generation).toBe(9);
  });

  it('is refused to a daemon with an older set than another daemon has, which is logged once', async () => {
    const { context, held, log } = aDaemon({ current: { number: 8, setHash: 'newer' } });
    expect([await codeOf(context), await codeOf(context)]).toEqual(['superseded', 'superseded']);
    expect(log.lines).toHaveLength(1);
    held.current = { number: 9, setHash: 'test' };
    expect(await codeOf(context)).toBe('ok');
    expect(log.lines.map(({ fields }) => fields)).toMatchObject([
      { event: 'ebb.superseded', hash: 'newer', generation: 8 },
      { event: 'ebb.policies_current' },
    ]);
  });

  it('is given again once a store that came back empty has got back its generation', async () => {
    expect(await codeOf(aDaemon().context)).toBe('ok');
  });

  it('is refused while no set is current, in observe mode, and while the clock is wrong', async () => {
    const current = { number: 7, setHash: 'test' };
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
