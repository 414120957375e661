import { expect, it } from 'vitest';
import { recommendFacts } from '../../src/cli/recommend/facts.ts';
import { awakeHistory } from '../../src/domain/awake/intervals.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import { DAY_MS } from '../../src/domain/time/units.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { aCompute, aLimits, compiled } from '../support/builders.ts';

const hold: Hold = {
  ...{ id: 'h', projectId: 'p', computeId: 'ep-held', owner: 'alex', reason: 'load test' },
  ...{ createdAtMs: 0, expiresAtMs: Number.POSITIVE_INFINITY },
};

it('what somebody holds is decided by them, field by field', () => {
  const read = readSettings({ env: { EBB_POLICIES: 'none' }, cwd: '/' });
  if (!read.ok) throw new Error(read.problems.join());
  const past = ['ep-held', 'ep-other'].map((computeId) => ({
    compute: aCompute({ computeId }),
    readHistory: () => awakeHistory([], { fromMs: 0, toMs: 1 }),
  }));
  const decided = (...holds: Hold[]) =>
    [...recommendFacts(read.settings, past, { policies: undefined, holds })].map((facts) => facts.decided);
  expect(decided()).toEqual([{}, {}]);
  expect(decided({ ...hold, suspendTimeoutSeconds: 600 })).toEqual([{ suspend_timeout: 'the hold of alex' }, {}]);
  expect(decided({ ...hold, freeze: true })).toEqual([
    { size: 'the hold of alex', suspend_timeout: 'the hold of alex' },
    {},
  ]);
});

it('what a start is worth follows the first glob of the settings that matches', () => {
  const read = readSettings({ env: { EBB_POLICIES: 'none' }, cwd: '/' });
  if (!read.ok) throw new Error(read.problems.join());
  const coldStartWorthMs = [
    ['web-*/main', 60_000],
    ['web-*', 900_000],
  ] as const;
  const past = [
    aCompute({ projectName: 'web-shop', branchName: 'main' }),
    aCompute({ projectName: 'web-shop', branchName: 'preview' }),
    aCompute({ projectName: 'dev' }),
  ].map((compute) => ({ compute, readHistory: () => awakeHistory([], { fromMs: 0, toMs: 1 }) }));
  const facts = [...recommendFacts({ ...read.settings, coldStartWorthMs }, past, { policies: undefined })];
  expect(facts.map((one) => one.coldStartWorthMs)).toEqual([60_000, 900_000, undefined]);
});

it("what a team's policies that can't be read decide is not proposed, and its computes stay its own", () => {
  const read = readSettings({ env: { EBB_POLICIES: 'none' }, cwd: '/' });
  if (!read.ok) throw new Error(read.problems.join());
  const computes = ['web-shop', 'dev-one'].map((projectName, index) =>
    aCompute({ projectName, projectId: projectName, computeId: `ep-${index}` }),
  );
  const projects = ['dev-*'];
  const policies = compiled(...unloadedPart({ name: 'dev', projects }).policies);
  const past = computes.map((compute) => ({ compute, readHistory: () => awakeHistory([], { fromMs: 0, toMs: 1 }) }));
  const text = "a policy of dev that is staged or can't be read";
  const facts = [...recommendFacts({ ...read.settings, owners: [[projects, 'dev']] }, past, { policies })];
  expect(facts.map(({ decided, owner, unreadDecider }) => [decided, owner, unreadDecider])).toEqual([
    [{}, 'unowned', undefined],
    [{ size: text, suspend_timeout: text }, 'dev', text],
  ]);
});

it('limits leave what people set within them', () => {
  const read = readSettings({ env: { EBB_POLICIES: 'none' }, cwd: '/' });
  if (!read.ok) throw new Error(read.problems.join());
  const policies = compiled(aLimits({ size: { maxCu: 2 } }));
  const past = [
    { compute: aCompute({ createdAtMs: 0 }), readHistory: () => awakeHistory([], { fromMs: 0, toMs: DAY_MS }) },
  ];
  const [facts] = [...recommendFacts(read.settings, past, { policies })];
  const wanted = (minCu: number, maxCu: number) =>
    facts?.wanted?.({ minCu, maxCu, suspendTimeoutSeconds: 300 }).map((given) => [given.minCu, given.maxCu]);
  expect(wanted(0.25, 2)).toEqual([[0.25, 2]]);
  expect(wanted(1, 4)).toEqual([[1, 2]]);
});

it('when the timeout was last changed is known by the record, whoever changed it', () => {
  const read = readSettings({ env: { EBB_POLICIES: 'none' }, cwd: '/' });
  if (!read.ok) throw new Error(read.problems.join());
  const past = ['ep-changed', 'ep-by-hand', 'ep-other'].map((computeId) => ({
    compute: aCompute({ computeId }),
    readHistory: () => awakeHistory([], { fromMs: 0, toMs: 1 }),
  }));
  const records = new Map([
    ['ep-changed', { lastChanges: { suspend_timeout: { before: {}, answeredAtMs: 7 } } }],
    ['ep-by-hand', { manual: { suspend_timeout: { fields: {}, seenAtMs: 8, raises: false } } }],
    ['ep-other', { lastChanges: { size: { before: {}, answeredAtMs: 9 } } }],
  ]);
  const facts = [...recommendFacts(read.settings, past, { policies: undefined, records })];
  expect(facts.map(({ timeoutSinceMs }) => timeoutSinceMs)).toEqual([7, 8, undefined]);
});
