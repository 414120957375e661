/** No set of files of a team changes the decision for a compute outside its scope, whatever they say and however broken they are. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { evaluateNow } from '../../src/domain/evaluate/evaluate.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { PolicySet } from '../../src/domain/policy/policy.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { compileSelector } from '../../src/domain/policy/select.ts';
import { teamPart, unloadedPart, withParts } from '../../src/domain/policy/team-parts.ts';
import { type PolicyFileText, parsePolicyFiles } from '../../src/policy/parse.ts';
import type { Team } from '../../src/policy/teams.ts';
import { policySets } from '../domain/arbitraries.ts';
import { aCompute, at } from '../support/builders.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const WEB: Team = { name: 'web', policies: [], projects: ['web-*', '!web-secret'] };
const API: Team = { name: 'api', policies: [], projects: ['api-*', 'web-api-*'] };

const COMPUTES = ['web-eu', 'web-secret', 'web-api-1', 'api-eu', 'api-web', 'x', 'Web-eu', 'p-web'].flatMap(
  (projectName) =>
    [2, 8].map((maxCu) =>
      aCompute({
        projectName,
        projectId: `p-${projectName}`,
        computeId: `ep-${projectName}-${maxCu}`,
        maxCu,
        branchName: 'main',
      }),
    ),
);
const isInScope = compileSelector({ projects: WEB.projects, minAgeMs: 0 });
const OUTSIDE = COMPUTES.filter((compute) => isInScope(compute, NOW_MS) === 'no');

const PLATFORM = `version: 1
owner: platform
sources: { common: { from: postgres, dsn_env: EBB_DSN_A } }
policies:
  - { name: office, kind: schedule, select: { projects: ["*"] }, windows: [{ at: always, size: 1-4 }], otherwise: leave, priority: 3 }
  - { name: room, kind: headroom, select: { projects: ["api-*", x] }, connections: common, target: 70%, max_size: 8 }
`;
const OTHERS = `version: 1
policies:
  - { name: night, kind: schedule, select: { projects: ["api-*"] }, windows: [{ at: "Mon-Fri 08:00-18:00", size: 2-3 }], otherwise: { size: 0.25-1 } }
  - { name: quiet, kind: limits, select: { projects: ["web-api-*"] }, size: { max: 2 } }
`;

const some = <T>(...values: T[]) => fc.constantFrom(...values);
const glob = some(
  '*',
  'web-*',
  'web-eu*',
  '!web-secret',
  'api-*',
  '?*',
  'w*',
  'web?eu',
  'x',
  'p-*',
  '*eu',
  'web-*-eu',
  '!*',
  'p-api-eu',
);
const selector = fc.oneof(
  { weight: 16, arbitrary: some<object | string>({ projects: ['web-eu*'] }, { projects: ['web-*', '!web-secret'] }) },
  { weight: 4, arbitrary: fc.array(glob, { minLength: 1, maxLength: 2 }).map((globs) => ({ projects: globs })) },
  some<object | string>({ branches: ['main'] }, { computes: ['*'] }, { accounts: ['*'] }, 'all', {
    projects: ['web-eu'],
    types: ['read_write'],
  }),
);
const FINE_RESTS = [
  { kind: 'schedule', windows: [{ at: 'always', size: '8' }], otherwise: 'leave' },
  {
    kind: 'schedule',
    windows: [{ at: 'Mon-Fri 08:00-18:00', size: '4-8', ready: true }],
    otherwise: { size: '0.25-1' },
  },
  { kind: 'limits', size: { max: 1 }, hard: true },
  { kind: 'freeze', at: 'always' },
  { kind: 'restart', at: 'Mon 03:00-04:00', every: '7d' },
  { kind: 'headroom', connections: 'common', target: '10%', max_size: 16 },
];
const BROKEN_RESTS = [
  { kind: 'headroom', connections: 'api/common', target: '10%', max_size: 16 },
  { kind: 'trial', of: ['office', 'night'], control: '50%', from: '2026-03-02', until: '2026-03-16' },
  { kind: 'nonsense' },
];
const NAMES = ['office', 'night', 'quiet', 'room', 'own'];

/** Policies of a file: that can be loaded, or but for what they select, or that may be anything. */
function policiesOf(are: 'fine' | 'beyond' | 'any') {
  const inScope = some<object | string>(
    ...[{ projects: ['web-eu*'] }, { projects: ['web-*', '!web-secret'] }],
    ...[
      { projects: ['web-eu'], types: ['read_write'] },
      { projects: ['web-api-*'], branches: ['main'] },
    ],
  );
  const policy = fc
    .tuple(
      are === 'any' ? some(...NAMES, 'api/night') : some(...NAMES),
      are === 'fine' ? inScope : selector,
      are === 'any' ? some<object>(...FINE_RESTS, ...BROKEN_RESTS) : some<object>(...FINE_RESTS),
      some(0, 5, 999_999),
      some('enforce', 'observe'),
    )
    .map(([name, select, more, priority, mode]) => ({ name, select, priority, mode, ...more }));
  return fc.uniqueArray(policy, { minLength: 1, maxLength: 2, selector: ({ name }) => name });
}

const FINE_HEADS = [{}, { owner: 'web' }, { groups: { all: { projects: ['web-eu'] } } }];
const BROKEN_HEADS = [
  { owner: 'platform' },
  { sources: { common: { from: 'postgres', dsn_env: 'EBB_DSN_B' } } },
  { groups: { all: { projects: ['*'] } } },
];
const wholeFile = (are: 'fine' | 'beyond') =>
  fc.record({ policies: policiesOf(are), head: some<object>(...FINE_HEADS), slip: fc.constant(undefined) });
const anyFile = fc.record({
  policies: policiesOf('any'),
  head: some<object>(...FINE_HEADS, ...BROKEN_HEADS),
  slip: fc.option(fc.tuple(fc.nat(400), some('', ':', '{', 'x', '\n')), { nil: undefined }),
});

/** Files of which most can be loaded: each policy has another name. Now and then anything goes, and a character is lost or another. */
const files = fc
  .oneof(
    { weight: 8, arbitrary: fc.array(wholeFile('fine'), { minLength: 1, maxLength: 3 }) },
    { weight: 3, arbitrary: fc.array(wholeFile('beyond'), { minLength: 1, maxLength: 2 }) },
    { weight: 1, arbitrary: fc.array(anyFile, { maxLength: 3 }) },
  )
  .map((drawn) =>
    drawn.map(({ policies, head, slip }, index): PolicyFileText => {
      const named = policies.map((one) => ({ ...one, name: index === 0 ? one.name : `${one.name}-${index}` }));
      // JSON is YAML.
      const written = JSON.stringify({ version: 1, ...head, policies: named }, null, 1);
      const text = slip ? `${written.slice(0, slip[0])}${slip[1]}${written.slice(slip[0] + 1)}` : written;
      return { path: `${['a', 'p', 'z'][index]}/web.yaml`, text, team: WEB };
    }),
  );

/** The set that a daemon has of these files; a team that is broken keeps what it had. */
function setWith(ofTeam: readonly PolicyFileText[], before?: PolicySet): PolicySet {
  const parsed = parsePolicyFiles([
    { path: 'common.yaml', text: PLATFORM },
    { path: 'policies/api.yaml', text: OTHERS, team: API },
    ...ofTeam,
  ]);
  if (parsed.ok) return parsed.set;
  if (!parsed.others) throw new Error(JSON.stringify(parsed.problems));
  return withParts(parsed.others.set, new Map([['web', before ? teamPart(before, 'web') : unloadedPart(WEB)]]));
}

/** What is decided and planned, without the places of policies in the set. */
function decisions(set: PolicySet): string[] {
  const policies = compilePolicies(set);
  const withoutPlaces = (key: string, value: unknown) => (/Ind(ex|exes)$/.test(key) ? undefined : value);
  return OUTSIDE.map((compute) => {
    const { decision, plan } = evaluateNow({
      ...{ policies, compute, record: undefined, mode: 'enforce', projectBusy: false, nowMs: NOW_MS },
      connections: new Map([['common', [{ atMs: NOW_MS - 1000, connections: 400 }]]]),
    });
    return JSON.stringify([decision, plan], withoutPlaces);
  });
}

const WITHOUT = decisions(setWith([]));

it('files of a team, well-formed or not, read one after the other', () => {
  let draws = 0;
  let loaded = 0;
  fc.assert(
    fc.property(files, files, (first, second) => {
      const before = setWith(first);
      const after = setWith(second, before);
      draws += 1;
      if (teamPart(before, 'web').policies.some(({ name }) => name !== 'web/not-loaded')) loaded += 1;
      expect(decisions(before)).toEqual(WITHOUT);
      expect(decisions(after)).toEqual(WITHOUT);
    }),
    { numRuns: Number(process.env.EBB_PROPERTY_RUNS ?? 50), seed: 16 },
  );
  // Otherwise most was refused, and little is shown.
  expect(loaded / draws, `${loaded} of ${draws} first sets of files were loaded`).toBeGreaterThan(0.7);
});

it('policies of a team that no check of its files has seen', () => {
  const around = { zone: 'Europe/Berlin', fromMs: at('2026-03-02T00:00:00Z'), days: 7 };
  fc.assert(
    fc.property(policySets(around), selector, (policies, select) => {
      const keys = typeof select === 'string' ? { projects: ['*'] } : select;
      const own = policies.map((one) => ({
        ...{ ...one, name: `web/${one.name}`, team: 'web' },
        select: { ...one.select, ...keys, scope: WEB.projects },
      }));
      const part = policySet(own, new Map());
      expect(decisions(withParts(setWith([]), new Map([['web', part]])))).toEqual(WITHOUT);
    }),
    { numRuns: Number(process.env.EBB_PROPERTY_RUNS ?? 50), seed: 16 },
  );
});
