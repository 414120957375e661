import { expect, it, onTestFinished } from 'vitest';
import type { DaemonView, OperatorParts } from '../../src/app/operator/parts.ts';
import { teamsOf } from '../../src/app/operator/teams-of.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { aCompute, aHold } from '../support/builders.ts';

const TEAMS = [
  { name: 'web', projects: ['web-*', '!web-secret'] },
  { name: 'shop', projects: ['*-shop'] },
];
const computes = [
  aCompute({ projectId: 'p-web', projectName: 'web-shop', computeId: 'ep-web' }),
  aCompute({ projectId: 'p-api', projectName: 'api', computeId: 'ep-api' }),
  aCompute({ projectId: 'p-secret', projectName: 'web-secret', computeId: 'ep-secret' }),
  aCompute({ projectId: 'p-dark', projectName: 'p-dark', projectNameUnknown: true, computeId: 'ep-dark' }),
  // A name that says what a budget is called.
  aCompute({ projectId: 'p-named', projectName: 'budget:shop', computeId: 'ep-named' }),
];
/** Read, but not evaluated yet. */
const unevaluated = aCompute({ projectId: 'p-new', projectName: 'web-new', computeId: 'ep-new' });
const evaluated = (compute: Compute) => ({ compute });
const all = [...computes, unevaluated].map(({ projectId }) => projectId);
let listed = all;
let isListed = true;
const daemon = {
  fleet: {
    latestEvaluation: (id: string) => computes.filter(({ computeId }) => computeId === id).map(evaluated)[0],
    evaluatedComputes: () => computes.map((compute) => ({ compute })),
    cachedProjects: () => [...computes, unevaluated].map((compute) => ({ computes: [compute] })),
    cachedProject: (id: string) =>
      [...computes, unevaluated].some(({ projectId }) => projectId === id) ? {} : undefined,
    projectIds: () => listed,
    isListed: () => isListed,
  },
  policies: () => ({
    set: {
      policies: [
        { name: 'web/costs', kind: 'budget', team: 'web' },
        { name: 'shop', kind: 'budget', team: 'shop' },
        { name: 'web/hours', kind: 'schedule', team: 'web' },
        { name: 'costs', kind: 'budget' },
      ],
    },
  }),
  teams: () => TEAMS,
  staged: () => [
    { team: '', hash: 'a'.repeat(64), message: '' },
    { team: 'web', hash: 'b'.repeat(64), message: '' },
  ],
} as unknown as DaemonView;
const parts = {
  daemon,
  now: async () => 0,
  store: {
    holds: async () => [aHold({ id: 'h-1', projectId: 'p-web', computeId: 'ep-web' })],
    projectIds: async () => [],
    records: async () => new Map(),
  },
} as unknown as OperatorParts & { daemon: DaemonView };

it.each([
  ['ep-web', ['web', 'shop']],
  ['p-web/ep-web', ['web', 'shop']],
  ['web-shop', ['web', 'shop']],
  ['h-1', ['web', 'shop']],
  ['ep-api', []],
  ['ep-secret', []],
  // A project of the team does not bring another's compute with it.
  ['p-web/ep-api', []],
  ['p-web/ep-unknown', []],
  ['ep-dark', []],
  ['nonsense!', []],
  ['ep-new', ['web']],
  ['web-new', ['web']],
  ['budget:web/costs', ['web']],
  ['budget:shop', []],
  ['budget:web/hours', []],
  ['budget:costs', []],
  ['budget:none', []],
])('%s is in the scopes of %j', async (target, teams) => {
  expect(await teamsOf(parts, 'compute', target)).toEqual(teams);
});

it.each([
  ['b'.repeat(12), ['web']],
  ['a'.repeat(12), ['']],
  ['c'.repeat(12), undefined],
])('the staged set %s is of %j', async (hash, teams) => {
  expect(await teamsOf(parts, 'set', hash)).toEqual(teams);
});

it.each(['ep-unknown', 'web-unknown', 'p-web/ep-unknown'])(
  '%s may be in any scope until all projects are read',
  async (target) => {
    listed = [...all, 'p-unread'];
    onTestFinished(() => {
      listed = all;
    });
    expect(await teamsOf(parts, 'compute', target)).toBeUndefined();
  },
);

it('a compute that nobody knows may be in any scope while the projects of an account are not known', async () => {
  isListed = false;
  onTestFinished(() => {
    isListed = true;
  });
  expect(await teamsOf(parts, 'compute', 'web-unknown')).toBeUndefined();
  expect(await teamsOf(parts, 'compute', 'ep-api')).toEqual([]);
});
