import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { compileSelector } from '../../src/domain/policy/select.ts';
import type { SelectorKeys } from '../../src/domain/policy/selector.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { compiled } from '../support/builders.ts';
import { SEED } from '../support/seed.ts';
import { computes, holdLists, policySets } from './arbitraries.ts';
import { slowOutcome, slowSelection } from './precedence-oracle.ts';

const MINUTE_MS = 60_000;
const NOON = Date.UTC(2026, 2, 2, 12);
/** Sets of policies; EBB_FUZZ_RUNS=100000 for the long run. EBB_SEED=… throws the same dice again. */
const RUNS = Number(process.env.EBB_FUZZ_RUNS ?? 500);

const some = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const NAMES = ['main', 'dev', 'br-one', 'br-two', 'preview/1'];
const globs = fc.array(
  some(
    '*',
    'main',
    'dev',
    'br-*',
    'br-one',
    'preview/?',
    'p-*',
    'web-*',
    '!main',
    '!d*',
    '!br-two',
    '!br-*',
    '!web-shop',
  ),
  { maxLength: 3 },
);
const role = some('default' as const, 'protected' as const, 'child' as const);
const selectors: fc.Arbitrary<SelectorKeys> = fc
  .record({
    projects: fc.option(fc.oneof(globs, some(['*'])), { nil: undefined, freq: 2 }),
    branches: maybe(globs),
    branchRoles: fc.option(fc.uniqueArray(role, { minLength: 1 }), { nil: undefined, freq: 1 }),
    types: maybe(some<readonly Compute['type'][]>(['read_write'], ['read_only'], ['read_only', 'read_write'])),
    minAgeMs: some(0, 0, 0, 30 * MINUTE_MS),
  })
  .map(({ minAgeMs, ...keys }) => ({
    ...Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined)),
    minAgeMs,
  }));

/** Of a compute, branch and project may be known or not. */
const subjects = fc
  .tuple(
    computes,
    maybe(some(...NAMES)),
    fc.uniqueArray(role),
    fc.boolean(),
    some('br-one', 'br-two'),
    some(10, 29, 30, 600),
  )
  .map(
    ([compute, branchName, branchRoles, projectNameUnknown, branchId, ageMinutes]): Compute => ({
      ...compute,
      branchId,
      createdAtMs: NOON - ageMinutes * MINUTE_MS,
      ...(branchName !== undefined && { branchName, branchRoles }),
      ...(projectNameUnknown && { projectNameUnknown }),
    }),
  );

describe('a selector', () => {
  it('says what three-valued logic does of what is known, and never what could turn out to be wrong', () => {
    fc.assert(
      fc.property(selectors, subjects, (selector, compute) => {
        const selection = compileSelector(selector)(compute, NOON);
        expect(selection).toBe(['no', 'unknown', 'yes'][slowSelection(selector, compute, NOON) * 2]);
        if (selection === 'unknown') return;
        for (const world of worldsOf(compute)) expect(compileSelector(selector)(world, NOON)).toBe(selection);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
});

/** All that a compute may be of which not everything is known. */
function worldsOf(compute: Compute): Compute[] {
  const names = compute.branchName === undefined ? [...NAMES, 'other'] : [compute.branchName];
  const roles = compute.branchRoles
    ? [compute.branchRoles]
    : ([[], ['default'], ['child'], ['child', 'protected']] as const);
  const projects = compute.projectNameUnknown ? ['web-shop', 'main', 'other'] : [compute.projectName];
  const { projectNameUnknown: _known, ...rest } = compute;
  return names.flatMap((branchName) =>
    roles.flatMap((branchRoles) => projects.map((projectName) => ({ ...rest, branchName, branchRoles, projectName }))),
  );
}

/** Windows that need no calendar: how these are counted is another matter. */
const times: fc.Arbitrary<TimeSpec[]> = fc.array(
  fc.oneof(
    some<TimeSpec>({ kind: 'always' }),
    fc.tuple(fc.integer({ min: -90, max: 90 }), fc.integer({ min: 1, max: 120 })).map(
      ([from, minutes]): TimeSpec => ({
        kind: 'interval',
        startMs: NOON + from * MINUTE_MS,
        endMs: NOON + (from + minutes) * MINUTE_MS,
      }),
    ),
  ),
  { minLength: 1, maxLength: 2 },
);

/** Sets of all kinds but headroom, with selectors of every kind. */
const sets = fc
  .tuple(
    policySets({ zone: 'UTC', fromMs: NOON - (NOON % 86_400_000), days: 1 }),
    fc.infiniteStream(fc.tuple(selectors, times, times)),
  )
  .map(([policies, stream]) =>
    policies.flatMap((policy): Policy[] => {
      const [select, at, other] = stream.next().value;
      if (policy.kind === 'headroom' || policy.kind === 'trial') return [];
      if (policy.kind === 'schedule') {
        const windows = policy.windows.map((window, index) => ({ ...window, at: index === 0 ? at : other }));
        return [{ ...policy, select, windows }];
      }
      return ['limits', 'budget'].includes(policy.kind)
        ? [{ ...policy, select }]
        : [{ ...policy, select, at } as Policy];
    }),
  );

const windows = {
  isOpenAt: (specs: readonly TimeSpec[], ms: number) =>
    specs.some((spec) => spec.kind === 'always' || (spec.kind === 'interval' && spec.startMs <= ms && ms < spec.endMs)),
};

describe('a decision', () => {
  it('is what the page of the language says, whatever is known of the compute', () => {
    const baseline = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 600 };
    const instants = fc.array(fc.integer({ min: -100, max: 100 }), { minLength: 2, maxLength: 3 });
    fc.assert(
      fc.property(sets, subjects, holdLists(NOON), instants, (policies, compute, holds, minutes) => {
        const set = compiled(...policies);
        for (const minute of minutes) {
          const instantMs = NOON + minute * MINUTE_MS;
          const decision = decide({ policies: set, compute, baseline, holds, instantMs });
          const expected = slowOutcome(policies, { compute, baseline, holds, windows }, instantMs);
          const unknown = decision.trace.filter(({ code }) => code === 'selection_unknown');
          const found = {
            desired: decision.desired,
            enforced: decision.enforced,
            freezes: decision.freezes.map(({ policy }) => policy.name),
            restart: decision.restart?.policy.name,
            unknown: [...new Set(unknown.map(({ policy }) => policy?.name))],
          };
          expect(found).toEqual(expected);
        }
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
});
