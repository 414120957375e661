import { describe, expect, it } from 'vitest';
import { decide } from '../../src/domain/decide/decide.ts';
import { freezesAt } from '../../src/domain/overrides/freezes.ts';
import type { SelectorKeys } from '../../src/domain/policy/selector.ts';
import {
  aCompute,
  aFreeze,
  aHeadroom,
  aLimits,
  aRestart,
  aSchedule,
  at,
  compiled,
  planFor,
} from '../support/builders.ts';
import { aSelector, bounded } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const ALWAYS = [{ kind: 'always' }] as const;
/** Production, of which only the id of its branch is known. */
const unknown = aCompute({ minCu: 8, maxCu: 8, state: 'idle' });
const select = aSelector;
const notMain = select({ branches: ['*', '!main'] });
const main = select({ branches: ['main'] });

describe('while the branch of a compute is not known', () => {
  it('a schedule that may exclude it lowers nothing, and a freeze that may mean it holds', () => {
    const small = aSchedule({ select: notMain, windows: [{ at: ALWAYS, size: { minCu: 0.25, maxCu: 0.25 } }] });
    const alone = planFor({ policies: compiled(small), compute: unknown, nowMs: NOON });
    expect(alone).toMatchObject({ verdict: 'none', actions: [], reasons: [{ code: 'selection_unknown' }] });
    const toAll = { ...small, name: 'all', select: select({ projects: ['*'] }) };
    const policies = compiled(toAll, aFreeze({ select: main }));
    const frozen = planFor({ policies, compute: unknown, nowMs: NOON });
    expect(frozen).toMatchObject({ verdict: 'wait', heldBy: ['frozen'] });
    expect(frozen.reasons.at(-1)?.message).toContain('not known');
    const develop = { ...unknown, branchName: 'develop', branchRoles: [] };
    expect(
      planFor({ policies: compiled(small, aFreeze({ select: main })), compute: develop, nowMs: NOON }).verdict,
    ).toBe('act');
  });

  it('limits, headroom and restarts leave it alone, and the trace names each policy that may mean it', () => {
    const policies = compiled(
      aLimits({ select: notMain, size: { maxCu: 4 } }),
      aHeadroom({ select: main }),
      aRestart({ select: select({ branchRoles: ['default'] }) }),
      aFreeze({ select: main }),
    );
    const decision = decide({ policies, compute: unknown, baseline: undefined, instantMs: NOON });
    expect(decision).toMatchObject({ desired: { size: null, suspendTimeoutSeconds: null }, restart: undefined });
    expect(decision.freezes.map(({ policy }) => policy.name)).toEqual(['freeze']);
    const noted = decision.trace.filter(({ code }) => code === 'selection_unknown');
    expect(noted.map(({ policy }) => policy?.name)).toEqual(['limits', 'headroom', 'restart', 'freeze']);
  });

  it('a policy says nothing of it that what is known decides', () => {
    const byId = aSchedule({ select: select({ branches: ['br-one'] }) });
    const others = aFreeze({ select: select({ branches: ['main'], projects: ['dev-*'] }) });
    const policies = compiled(byId, others);
    expect(policies.selecting(unknown)).toEqual([0]);
    const { trace } = decide({ policies, compute: unknown, baseline: undefined, instantMs: NOON });
    expect(trace.map(({ code }) => code)).not.toContain('selection_unknown');
  });

  it("a freeze that a person has set counts, and doesn't where its ids exclude the compute", () => {
    const freeze = { id: 'f', owner: 'ann', reason: 'r', createdAtMs: 0, expiresAtMs: NOON + 1, allowRaise: false };
    const counts = (selector: Partial<SelectorKeys>) =>
      freezesAt([{ ...freeze, select: bounded(select(selector)) }], unknown, NOON).length;
    expect(counts({ branches: ['main'] })).toBe(1);
    expect(counts({ branches: ['*', '!br-one'] })).toBe(0);
    expect(counts({ branches: ['main'], projects: ['dev-*'] })).toBe(0);
  });
});

it('a project of which only the id is known is as little selected by its name', () => {
  const compute = aCompute({ projectId: 'calm-sea-1', projectName: 'calm-sea-1', projectNameUnknown: true });
  const policies = compiled(
    aSchedule({ select: select({ projects: ['*', '!shop'] }) }),
    aSchedule({ select: select({ projects: ['calm-*'] }) }),
    aFreeze({ select: select({ projects: ['shop'] }) }),
  );
  expect(policies.selecting(compute)).toEqual([1, 2]);
});
