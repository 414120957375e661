import { expect, it } from 'vitest';
import { StatusQuery } from '../../src/adapters/http/api/bodies.ts';
import { statusOf } from '../../src/app/evaluate-project/compute-status.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { OperatorParts } from '../../src/app/operator/parts.ts';
import { status } from '../../src/app/operator/status.ts';
import { openBudgets } from '../../src/app/usage/budget-store.ts';
import { keepSummary } from '../../src/app/usage/cost-summary.ts';
import { describeStatus } from '../../src/cli/status.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import type { BudgetState } from '../../src/domain/spend/state.ts';
import type { CostsDocument } from '../../src/ports/cost-documents.ts';
import type { FleetFilter } from '../../src/ports/status-page.ts';
import {
  aBudget,
  aCompute,
  aFreeze,
  aGuard,
  aHold,
  aRecord,
  aSchedule,
  at,
  compiled,
  currentRules,
} from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { aSelector } from '../support/selectors.ts';

const NOW_MS = at('2026-03-02T09:00:00Z');
const of = (project: string, owner: string) => ({
  ...aSchedule({ name: project, select: aSelector({ projects: [`${project}-*`] }) }),
  owner,
});
const policies = compiled(of('web', 'team-web'), of('api', 'team-api'));
const evaluated = ['web-eu', 'web-us', 'api-eu'].map((projectName) => {
  const compute = aCompute({ projectName, projectId: `p-${projectName}`, computeId: `ep-${projectName}` });
  const record = aRecord();
  const situation = { policies, compute, record, mode: 'enforce', projectBusy: false, nowMs: NOW_MS } as const;
  return { compute, record, ...evaluate(situation) };
});
const holds = ['web-eu', 'api-eu'].map((name) => aHold({ id: name, projectId: `p-${name}`, computeId: `ep-${name}` }));

/** One project is decided, one has no computes, one was read and is not decided yet. */
const CACHED = new Map([
  ['p-web-eu', { computes: [{ computeId: 'ep-web-eu' }] }],
  ['p-empty', { computes: [] }],
  ['p-undecided', { computes: [{ computeId: 'ep-undecided' }] }],
]);
const decided = (computeId: string) => evaluated.find(({ compute }) => compute.computeId === computeId);

const parts = {
  now: async () => NOW_MS,
  store: {
    holds: async () => holds,
    freezes: async () => [],
    ...memoryDocumentStore(),
    outboxCounts: async () => ({ receivers: [], lost: 0 }),
    generation: async () => undefined,
    approvals: async () => [],
    projectIds: async () => [],
  },
  daemon: {
    fleet: {
      ...{ evaluatedComputes: () => evaluated, latestEvaluation: decided, ownEvaluation: () => undefined },
      projectIds: () => ['p-web-eu', 'p-empty', 'p-undecided', 'p-new'],
      cachedProject: (id: string) => CACHED.get(id),
    },
    ...{ mode: 'enforce', policies: () => policies, owners: () => [['web-us', 'ann']], revision: () => undefined },
    facts: () => [],
    apiLimits: () => [],
    refusedProjects: () => [],
    rules: () => currentRules().current,
    herds: () => [],
    ...{ staged: () => [], policyProblems: () => [], readiness: async () => ({ ready: true, checks: [] }) },
  },
} as unknown as OperatorParts;

async function shown(query: object) {
  const found = await status(parts, query);
  if (!found.ok) throw new Error(found.error.message);
  const { computes, holds: held } = found.value;
  return [Object.values(computes).reduce((sum, count) => sum + count, 0), held.map(({ compute_id }) => compute_id)];
}

it('is of all computes, or of those of an owner, or of those that a selector matches', async () => {
  expect(await shown({})).toEqual([3, ['ep-web-eu', 'ep-api-eu']]);
  expect(await shown({ owner: 'team-web' })).toEqual([1, ['ep-web-eu']]);
  expect(await shown({ owner: 'ann' })).toEqual([1, []]);
  const { select } = StatusQuery.parse({ select: '{"projects":["*-eu"]}' });
  expect(await shown({ select })).toEqual([2, ['ep-web-eu', 'ep-api-eu']]);
  expect(await shown({ select, owner: 'team-api' })).toEqual([1, ['ep-api-eu']]);
  expect(await shown({ q: 'eu' })).toEqual([2, ['ep-web-eu', 'ep-api-eu']]);
  expect(await shown({ policy: 'web', status: 'held' })).toEqual([0, []]);
});

it('counts what waits, and lists operations, of the computes that a filter matches', async () => {
  const open = (computeId: string) => ({ operationId: `op-${computeId}`, action: 'apply_config', startedAtMs: 0 });
  const busy = evaluated.map(({ compute }) => {
    const record = aRecord({ openOperations: [open(compute.computeId)] });
    const situation = { policies, compute, record, mode: 'enforce', projectBusy: false, nowMs: NOW_MS } as const;
    return { compute, record, ...evaluate(situation) };
  });
  const fleet = { ...parts.daemon?.fleet, evaluatedComputes: () => busy };
  const of = async (query: object) => {
    const found = await status({ ...parts, daemon: { ...parts.daemon, fleet } } as unknown as OperatorParts, query);
    if (!found.ok) throw new Error(found.error.message);
    const { waiting, operations } = found.value;
    return [waiting, operations.map(({ compute_id }) => compute_id)];
  };
  const running = (computes: number) => [{ reason: 'operation_running', computes }];
  expect(await of({})).toEqual([running(3), ['ep-web-eu', 'ep-web-us', 'ep-api-eu']]);
  expect(await of({ owner: 'team-api' })).toEqual([running(1), ['ep-api-eu']]);
  expect(await of({ q: 'eu' })).toEqual([running(2), ['ep-web-eu', 'ep-api-eu']]);
  expect(await of({ q: 'nobody' })).toEqual([[], []]);
});

it('is frozen where somebody froze a compute, and not where its team has no policies in effect yet', () => {
  const compute = aCompute({ projectName: 'web-eu' });
  const record = aRecord();
  const of = (...given: Policy[]) => {
    const about = { compute, record, mode: 'enforce', projectBusy: false, nowMs: NOW_MS } as const;
    return { compute, record, ...evaluate({ ...about, policies: compiled(...given) }) };
  };
  const staged = unloadedPart({ name: 'web', projects: ['web-*'] }).policies;
  const seen = (evaluatedCompute: ReturnType<typeof of>, byPerson = false) =>
    statusOf({ mode: 'enforce' }, evaluatedCompute, () => byPerson);
  expect([seen(of(...staged)), seen(of(...staged), true), seen(of(...staged, aFreeze()))]).toEqual([
    'not_loaded',
    'frozen',
    'frozen',
  ]);
});

it('names no policy that only stands for a team without policies in effect', async () => {
  const [notLoaded] = unloadedPart({ name: 'web', projects: ['web-*'] }).policies;
  const daemon = { ...parts.daemon, policies: () => compiled(aFreeze(), notLoaded as Policy) };
  const found = await status({ ...parts, daemon } as unknown as OperatorParts, {});
  expect(found.ok && found.value.policies?.map(({ name }) => name)).toEqual(['freeze']);
});

it('has decisions of the computes that a filter matches, among the newest thousand', async () => {
  const entry = (computeId: string, atMs: number) => ({
    ...{ atMs, projectId: '', computeId, kind: 'write', setHash: '', reasons: [] },
  });
  const entries = [entry('ep-api-eu', 3), entry('', 2), entry('ep-web-us', 1), entry('ep-web-eu', 0)];
  const asked: object[] = [];
  const history = async (query: object) => {
    asked.push(query);
    return entries;
  };
  const operator = createOperator({ ...parts, store: { ...parts.store, history } } as unknown as OperatorParts);
  const idsOf = async (of: FleetFilter) => {
    const found = await operator.decisions({ limit: 1, of });
    return found.ok && found.value.map(({ compute_id }) => compute_id);
  };
  expect(await idsOf({ q: '', policy: 'web' })).toEqual(['ep-web-us']);
  expect(await idsOf({ q: 'nobody' })).toEqual([]);
  await idsOf({ q: '' });
  expect(asked).toEqual([{ limit: 1000 }, { limit: 1000 }, { limit: 1 }]);
});

it('has the budgets and freezes of an owner alone', async () => {
  const freezes = [
    { id: 'f-all', select: 'all' },
    { id: 'f-api', select: aSelector({ projects: ['api-*'] }) },
  ].map((one) => ({ ...one, owner: 'ann', reason: '', createdAtMs: 0, expiresAtMs: NOW_MS + 1, allowRaise: false }));
  const budgets = compiled(
    of('web', 'team-web'),
    of('api', 'team-api'),
    ...['web', 'api'].map((name) => aBudget({ name: `${name}-money`, owner: `team-${name}` })),
  );
  const daemon = { ...parts.daemon, policies: () => budgets } as NonNullable<OperatorParts['daemon']>;
  const store = {
    ...parts.store,
    ...memoryDocumentStore(),
    freezes: async () => freezes,
  } as unknown as OperatorParts['store'];
  const stateOf = (name: string): BudgetState => ({
    ...{ policy: `${name}-money`, account: 'main', month: { unit: 'usd', amount: 400 }, spent: 10, projected: null },
    ...{ fromMs: at('2026-03-01T00:00:00Z'), toMs: at('2026-04-01T00:00:00Z'), unknownHours: 0, knownUntilMs: NOW_MS },
    ...{ decidedAtMs: 0, notified: [], released: [], spans: [] },
  });
  await (await openBudgets(store)).replace(['web', 'api'].map(stateOf));
  const namesOf = async (query: object) => {
    const found = await status({ ...parts, store, daemon }, query);
    if (!found.ok) throw new Error(found.error.message);
    return [found.value.budgets?.map(({ budget }) => budget), found.value.freezes.map(({ id }) => id)];
  };
  expect(await namesOf({})).toEqual([
    ['web-money', 'api-money'],
    ['f-all', 'f-api'],
  ]);
  expect(await namesOf({ owner: 'team-web' })).toEqual([['web-money'], ['f-all']]);
  expect(await namesOf({ select: { projects: ['api-*'] } })).toEqual([[], ['f-all', 'f-api']]);
  expect(await namesOf({ q: 'api' })).toEqual([[], ['f-all', 'f-api']]);
  expect(await namesOf({ policy: 'api-money' })).toEqual([['api-money'], []]);
});

it('has the policies, guards, staged sets and broken files that concern an owner', async () => {
  const all = compiled(
    of('web', 'team-web'),
    { ...of('api', 'team-api'), team: 'team-api' },
    { ...aFreeze({ name: 'everywhere' }), owner: 'platform' },
    ...['web', 'api'].map((name) => aGuard({ name: `${name}-errors`, select: aSelector({ projects: [`${name}-*`] }) })),
    { ...aBudget({ name: 'of-none', select: aSelector({ projects: ['none-*'] }) }), owner: 'team-web' },
  );
  const hashOf = (team: string) => team.padEnd(64, '0');
  const staged = () =>
    ['', 'team-web', 'team-api'].map((team) => ({ team, hash: hashOf(team), message: '', impact: {} }));
  const policyProblems = (isShown = (_team: string) => true) => ['team-web', 'team-api'].filter(isShown);
  const daemon = { ...parts.daemon, policies: () => all, staged, policyProblems };
  const shownOf = async (query: object) => {
    const found = await status({ ...parts, daemon } as unknown as OperatorParts, query);
    if (!found.ok) throw new Error(found.error.message);
    const { policies: shownPolicies, guards, staged: ofNoTeam, staged_teams: teams, policy_problems } = found.value;
    return {
      policies: shownPolicies?.map(({ name }) => name),
      guards: guards?.map(({ guard }) => guard),
      staged: [ofNoTeam?.hash, ...teams.map(({ owner }) => owner)],
      problems: policy_problems,
    };
  };
  expect(await shownOf({})).toEqual({
    policies: ['web', 'api', 'everywhere', 'web-errors', 'api-errors', 'of-none'],
    guards: ['web-errors', 'api-errors'],
    staged: [hashOf(''), 'team-web', 'team-api'],
    problems: ['team-web', 'team-api'],
  });
  expect(await shownOf({ owner: 'team-web' })).toEqual({
    policies: ['web', 'everywhere', 'web-errors', 'of-none'],
    guards: ['web-errors'],
    staged: [hashOf(''), 'team-web'],
    problems: ['team-web'],
  });
  // What was approved is staged no more, though this daemon has not made it current yet.
  const store = { ...parts.store, approvals: async () => [{ hash: hashOf('team-web') }] };
  const found = await status({ ...parts, daemon, store } as unknown as OperatorParts, {});
  expect(found).toMatchObject({ value: { staged: { hash: hashOf('') }, staged_teams: [{ owner: 'team-api' }] } });
  // Whose computes these are does not matter: the files of their team do.
  expect(await shownOf({ q: 'api' })).toEqual({
    policies: ['api', 'everywhere', 'api-errors'],
    guards: ['api-errors'],
    staged: [hashOf(''), 'team-api'],
    problems: ['team-api'],
  });
});

it('has the costs of an owner alone, and none of a selector; an owner whom nobody knows is refused', async () => {
  const line = (owner: string, usd: number) => ({
    ...{ account: 'main', owner, cu_hours: 10 * usd, usd, unknown_hours: 0, anomaly: null },
    ...{ projected_usd: { low: usd, mid: 2 * usd, high: 3 * usd }, projected_cu_hours: null },
  });
  const costs = {
    ...{ at: '', from: '', to: '', known_until: '', owners: [line('team-web', 5), line('gone', 2)] },
    ...{ total: { cu_hours: 70, usd: 7, unknown_hours: 0, projected_usd: null }, would_have_saved: null },
  };
  const store = { ...parts.store, ...memoryDocumentStore() };
  await keepSummary(store, costs as unknown as CostsDocument);
  const costsOf = async (query: object) => {
    const found = await status({ ...parts, store }, query);
    return found.ok ? (found.value.costs?.total.usd ?? null) : found.error.message;
  };
  expect(await costsOf({})).toBe(7);
  expect(await costsOf({ owner: 'team-web' })).toBe(5);
  expect(await costsOf({ owner: 'gone' })).toBe(2);
  expect(await costsOf({ select: { projects: ['web-*'] } })).toBeNull();
  expect(await costsOf({ q: 'web', owner: 'team-web' })).toBeNull();
  expect(await costsOf({ owner: 'team-wbe' })).toBe(
    'nothing belongs to team-wbe; owners are ann, gone, team-api, team-web',
  );
});

it('has the refused projects of the computes that a filter matches', async () => {
  const refusedProjects = () => ['web-eu', 'api-eu', 'new'].map((name) => ({ project_id: `p-${name}` }));
  const daemon = { ...parts.daemon, refusedProjects };
  const of = async (query: object) => {
    const found = await status({ ...parts, daemon } as unknown as OperatorParts, query);
    return found.ok && found.value.refused_projects?.map((one) => one.project_id);
  };
  expect(await of({})).toEqual(['p-web-eu', 'p-api-eu', 'p-new']);
  expect(await of({ owner: 'team-web' })).toEqual(['p-web-eu']);
});

it('cannot be of some where no daemon knows whose they are', async () => {
  const { daemon: _, ...store } = parts;
  expect(await status(store, { owner: 'ann' })).toMatchObject({ ok: false, error: { code: 'unavailable' } });
});

it.each(['{', '{}', '{"project":["x"]}', '7'])('refuses a selector that is none: %s', (select) => {
  expect(StatusQuery.safeParse({ select }).success).toBe(false);
});

it('says how many projects are listed, and not read yet', async () => {
  const found = await status(parts);
  const lines = found.ok ? describeStatus(found.value) : [];
  expect(lines).toContainEqual(expect.stringMatching(/^computes: .*; 2 projects are not read yet$/));
  expect(lines).toContain('ready; 2 of 4 projects read so far');
});

it('says why changes wait', async () => {
  const found = await status(parts);
  if (!found.ok) throw new Error(found.error.message);
  const waiting = ['newly_discovered', 'of_a_newer_version'].map((reason) => ({ reason, computes: 2 }));
  expect(describeStatus({ ...found.value, waiting }).filter((line) => line.startsWith('waiting'))).toEqual([
    expect.stringMatching(
      /^waiting \(newly_discovered\): 2; ebb has just discovered .* wait for sleep or the next boundary$/,
    ),
    'waiting (of_a_newer_version): 2',
  ]);
});
