import { describe, expect, it } from 'vitest';
import { budgetStepNotifications } from '../../src/app/announcements/announcements.ts';
import { refreshLeaderDecisions } from '../../src/app/rollout/reload.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { addRelease, readBudgets } from '../../src/app/usage/budget-store.ts';
import { readDetail } from '../../src/app/usage/cost-detail.ts';
import { keepSummary, readSummary } from '../../src/app/usage/cost-summary.ts';
import { readPolicyChanges, readTrialDays } from '../../src/app/usage/trial-days.ts';
import { usageKey } from '../../src/app/usage/usage-account.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import type { BudgetState } from '../../src/domain/spend/state.ts';
import type { ApiResult, ControlApi, UsagePages } from '../../src/ports/control-api.ts';
import { aBudget, aCompute, aTrial, currentRules, NO_COSTS } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { aSelector } from '../support/selectors.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import { firstRound, type Rounds, startRounds } from './rounds.ts';
import { DAY_MS, HOUR_MS, passTo, START_MS, truthOf } from './support.ts';

const refused =
  (code: 'not_found' | 'unavailable', status: number): ControlApi['usage'] =>
  async (): Promise<ApiResult<UsagePages>> => ({
    ok: false,
    error: { code, status, route: 'GET x', message: 'no usage' },
  });

describe('the rounds of the leader', () => {
  it('show what the month has cost, by project and owner, and how old that is', async () => {
    const rounds = startRounds();
    await firstRound(rounds);
    const { gauges, world } = rounds;
    expect(gauges.get('ebb_usage_month_cu_seconds main one unowned')).toBeGreaterThan(0);
    const sum = [...gauges]
      .filter(([key]) => key.startsWith('ebb_usage_month'))
      .reduce((all, [, value]) => all + value, 0);
    expect(gauges.get('ebb_cost_month_to_date_usd main unowned')).toBeCloseTo((sum / 3600) * 0.2, 2);
    expect(gauges.get('ebb_usage_unknown_hours main')).toBe(0);
    // Of two days nothing can be projected.
    expect([...gauges.keys()].filter((key) => key.startsWith('ebb_cost_month_projected_usd'))).toEqual([]);
    const summary = await readSummary(rounds.store);
    const usd = gauges.get('ebb_cost_month_to_date_usd main unowned') ?? 0;
    expect(summary?.owners[0]).toMatchObject({ owner: 'unowned', usd: expect.closeTo(usd, 2), projected_usd: null });
    const age = gauges.get('ebb_usage_age_seconds main') ?? 0;
    passTo(world, world.nowMs + 60_000);
    await rounds.tick();
    expect(gauges.get('ebb_usage_age_seconds main')).toBe(age + 60);
    await rounds.rounds.close();
  });

  it('begin as soon as a list has come, and then at their own pace', async () => {
    let asked = 0;
    const rounds = startRounds(async () => {
      asked += 1;
      return { ok: true, value: { units: [], plans: new Map() } };
    });
    const listed = rounds.projects.splice(0);
    await rounds.look();
    expect(asked).toBe(0);
    rounds.projects.push(...listed);
    await rounds.look();
    expect(asked).toBeGreaterThan(0);
    const before = asked;
    passTo(rounds.world, rounds.world.nowMs + HOUR_MS);
    await rounds.look();
    expect(asked).toBe(before);
    await rounds.tick();
    expect(asked).toBeGreaterThan(before);
    await rounds.rounds.close();
  });

  it('attribute costs again as projects are read and renamed, and what is not read to nobody', async () => {
    const rules = currentRules();
    rules.current.costs = { ...rules.current.costs, owners: [['shop-*', 'shop']] };
    const rounds = startRounds(undefined, rules);
    for (const id of ['one', 'two', 'three']) rounds.unread.add(id);
    const named = (projectId: string, projectName: string) =>
      rounds.computes.set(projectId, [aCompute({ projectId, projectName, computeId: `ep-${projectId}` })]);
    const owners = async () => {
      const { owners: lines = [] } = (await readSummary(rounds.store)) ?? {};
      return Object.fromEntries(lines.map(({ owner, usd }) => [owner, usd ?? 0]));
    };
    await firstRound(rounds);
    const before = await owners();
    expect(Object.keys(before).toSorted()).toEqual(['not read yet', 'unattributed']);
    expect(await readSummary(rounds.store)).toMatchObject({ unread_projects: 3 });
    const { calls } = rounds.api;
    rounds.unread.clear();
    named('one', 'shop-one');
    await rounds.tick();
    const read = await owners();
    expect(Object.keys(read).toSorted()).toEqual(['shop', 'unattributed', 'unowned']);
    expect((read.shop ?? 0) + (read.unowned ?? 0)).toBeCloseTo(before['not read yet'] ?? 0, 1);
    expect(await readSummary(rounds.store)).not.toHaveProperty('unread_projects');
    const gauge = rounds.gauges.get('ebb_cost_month_to_date_usd main shop');
    expect(gauge).toBeCloseTo(read.shop ?? 0, 2);
    named('one', 'other');
    await rounds.tick();
    expect(Object.keys(await owners()).toSorted()).toEqual(['unattributed', 'unowned']);
    expect(rounds.api.calls).toBe(calls);
    await rounds.rounds.close();
  });

  it('attribute after a restart by the computes that were last known, until they are read again', async () => {
    const rules = currentRules();
    rules.current.costs = { ...rules.current.costs, owners: [['one/*', 'shop']] };
    const start = (store?: Rounds['store']) => {
      const rounds = startRounds(undefined, rules, store);
      for (const projectId of ['one', 'two', 'three']) {
        const compute = aCompute({ projectId, projectName: projectId, computeId: `ep-${projectId}` });
        rounds.computes.set(projectId, [compute]);
      }
      return rounds;
    };
    const rounds = start();
    await firstRound(rounds);
    const before = await readSummary(rounds.store);
    expect(before?.owners.map(({ owner }) => owner)).toContain('shop');
    await rounds.rounds.close();
    const again = start(rounds.store);
    for (const id of ['one', 'two', 'three']) again.unread.add(id);
    await firstRound(again);
    expect(await readSummary(again.store)).toEqual(before);
    await again.rounds.close();
  });

  it('read once an hour, and only while they lead', async () => {
    const rounds = startRounds();
    await firstRound(rounds);
    const before = rounds.api.calls;
    await rounds.tick();
    expect(rounds.api.calls).toBe(before);
    rounds.lead(false);
    passTo(rounds.world, rounds.world.nowMs + HOUR_MS);
    await rounds.tick();
    expect(rounds.api.calls).toBe(before);
    expect([...rounds.gauges.keys()]).toEqual([]);
    rounds.lead(true);
    await rounds.tick();
    expect(rounds.api.calls).toBe(before + 2);
    await rounds.rounds.close();
  });

  it("keep the days of a trial while its team's policies are not loaded, and forget them once they are without it", async () => {
    const rules = currentRules(aTrial({ name: 'web/proof', team: 'web' }));
    const rounds = startRounds(undefined, rules);
    await firstRound(rounds);
    const place = { account: 'main', organization: 'org-acme' };
    const unit = { projectId: 'one', branchId: null };
    await rounds.store.putUsage(
      `${usageKey(place)}/trial/web/proof`,
      new Map([['one', new TextEncoder().encode('{"from":0,"days":[1]}')]]),
    );
    const isKeptWith = async (...policies: Policy[]) => {
      rules.current = currentRules(...policies).current;
      passTo(rounds.world, rounds.world.nowMs + DAY_MS);
      await rounds.tick();
      return (await readTrialDays(rounds.store, place, 'web/proof', [unit])).has('one');
    };
    const frozen = unloadedPart({ name: 'web', projects: ['*'] }).policies;
    expect([await isKeptWith(...frozen), await isKeptWith(...frozen), await isKeptWith()]).toEqual([true, true, false]);
    await rounds.rounds.close();
  });

  it.each([
    { why: 'by policies that another daemon has replaced', newer: (rounds: Rounds) => rounds.permit(false) },
    { why: 'once another daemon leads', newer: (rounds: Rounds) => rounds.lead(false) },
  ])('forget and note nothing of a trial $why', async ({ newer }) => {
    const trial = aTrial({ design: { ...aTrial().design, fromDay: START_MS / DAY_MS } });
    const rules = currentRules(trial);
    let read = () => {};
    const rounds: Rounds = startRounds((...asked) => {
      read();
      return rounds.api.usage(...asked);
    }, rules);
    await firstRound(rounds);
    const place = { account: 'main', organization: 'org-acme' };
    const days = () => readTrialDays(rounds.store, place, trial.name, [{ projectId: 'one', branchId: null }]);
    const bytes = new TextEncoder().encode('{"from":0,"days":[1]}');
    await rounds.store.putUsage(`${usageKey(place)}/trial/${trial.name}`, new Map([['one', bytes]]));
    rules.current = { ...currentRules().current, revision: 'older' };
    read = () => newer(rounds);
    passTo(rounds.world, rounds.world.nowMs + DAY_MS);
    await rounds.tick();
    expect([...(await days()).keys()]).toEqual(['one']);
    rules.current = { ...currentRules(trial).current, revision: 'older' };
    await rounds.tick();
    expect(await readPolicyChanges(rounds.store, place, trial)).toEqual([]);
    expect(rounds.failures).toEqual([]);
    await rounds.rounds.close();
  });

  it('note when policies change while a trial runs', async () => {
    const trial = aTrial({ design: { ...aTrial().design, fromDay: START_MS / DAY_MS } });
    const rules = currentRules(trial);
    const rounds = startRounds(undefined, rules);
    await firstRound(rounds);
    const changes = async () => {
      const place = { account: 'main', organization: 'org-acme' };
      return readPolicyChanges(rounds.store, place, trial);
    };
    expect(await changes()).toEqual([]);
    const { current } = rules;
    rules.current = { ...current, revision: 'v2' };
    passTo(rounds.world, rounds.world.nowMs + HOUR_MS);
    const atMs = rounds.world.nowMs;
    await rounds.tick();
    await rounds.tick();
    expect(await changes()).toEqual([{ atMs, setHash: current.policies.set.hash, revision: 'v2' }]);
    // After its end nothing is noted any more.
    passTo(rounds.world, START_MS + 56 * DAY_MS);
    rules.current = current;
    await rounds.tick();
    expect(await changes()).toHaveLength(1);
    expect(rounds.failures).toEqual([]);
    await rounds.rounds.close();
  });

  it('say once that an account may not ask, which is asked again soon, and then the next day', async () => {
    let asked = 0;
    const rounds = startRounds((...query) => {
      asked += 1;
      return refused('not_found', 404)(...query);
    });
    await firstRound(rounds);
    for (let hour = 0; hour < 30; hour += 1) {
      passTo(rounds.world, rounds.world.nowMs + HOUR_MS);
      await rounds.tick();
    }
    expect(asked).toBe(3);
    expect(rounds.said).toEqual([{ level: 'info', event: 'ebb.usage_unavailable' }]);
    expect([...rounds.gauges.keys()]).toEqual([]);
    expect(rounds.failures).toEqual([]);
    await rounds.rounds.close();
  });

  it('fail where the API cannot be reached, and wait ten minutes', async () => {
    const rounds = startRounds(refused('unavailable', 503));
    await firstRound(rounds);
    await rounds.tick();
    expect(rounds.failures.length).toBe(1);
    passTo(rounds.world, rounds.world.nowMs + HOUR_MS / 5);
    await rounds.tick();
    expect(rounds.failures.length).toBe(2);
    await rounds.rounds.close();
  });

  it('decide the steps of budgets, which every daemon then reads with its policies', async () => {
    const spent = 0.9;
    const amounts = aBudget({
      month: { unit: 'cu_hours', amount: spent },
      select: aSelector({ projects: ['on*', '!none'] }),
    });
    const rules = currentRules(amounts);
    const rounds = startRounds(undefined, rules);
    await firstRound(rounds);
    const [state] = (await readBudgets(rounds.store)) ?? [];
    expect(state).toMatchObject({ policy: 'budget', account: 'main', spans: [{ at: 1, of: 'spent' }] });
    const used = rounds.gauges.get('ebb_usage_month_cu_seconds main one unowned') ?? 0;
    expect(state?.spent).toBeCloseTo(used / 3600, 6);
    expect(rounds.gauges.get('ebb_budget_spent_ratio main budget')).toBeCloseTo(used / 3600 / spent, 6);
    expect(rounds.gauges.get('ebb_budget_step main budget')).toBe(3);
    expect(rounds.said).toContainEqual({ event: 'ebb.budget_step', level: 'warn' });
    const daemon = { rules: currentRules(amounts), sets: createPolicySets({ stages: false, accepted: undefined }) };
    await refreshLeaderDecisions({ ...daemon, store: rounds.store });
    expect(daemon.rules.current.policies.budgetSteps).toEqual(state?.spans);
    expect(daemon.sets.needsReevaluation).toBe(true);
    const [told] = budgetStepNotifications([state as BudgetState], rules.current.policies.set, rounds.world.nowMs);
    expect(told).toMatchObject({ kind: 'budget_step', policy: 'budget', command: 'ebb release --budget budget' });
    const what = 'step 100% spent limits: size at most 1 CU, suspend_after at most 5m; ';
    expect(told?.text).toContain(`budget budget of the account main: ${what}`);
    // A store that came back empty takes nothing away.
    await refreshLeaderDecisions({ ...daemon, store: memoryDocumentStore() });
    expect(daemon.rules.current.policies.budgetSteps).toEqual(state?.spans);
    await addRelease(rounds.store, { policy: 'budget', who: 'ann', atMs: rounds.world.nowMs });
    await rounds.tick();
    await refreshLeaderDecisions({ ...daemon, store: rounds.store });
    expect(daemon.rules.current.policies.budgetSteps).toMatchObject([{ untilMs: rounds.world.nowMs }]);
    rounds.lead(false);
    await rounds.tick();
    expect([...rounds.gauges.keys()].filter((key) => key.startsWith('ebb_budget'))).toEqual([]);
    await rounds.rounds.close();
  });

  it('write back lost costs, even if the lease is lost, too, until another daemon is known to lead', async () => {
    const rounds = startRounds();
    await firstRound(rounds);
    const known = [await readSummary(rounds.store), await readDetail(rounds.store)];
    expect(known).not.toContain(undefined);
    await rounds.loseCosts();
    expect([await readSummary(rounds.store), await readDetail(rounds.store)]).toEqual(known);
    rounds.lead(false);
    await rounds.loseCosts();
    expect([await readSummary(rounds.store), await readDetail(rounds.store)]).toEqual(known);
    const since = { at: 'since' } as never;
    await rounds.loseCosts(() => keepSummary(rounds.store, since));
    expect(await readSummary(rounds.store)).toEqual(since);
    await rounds.tick();
    await rounds.loseCosts();
    expect(await readSummary(rounds.store)).toBeUndefined();
    await rounds.rounds.close();
  });

  it('keep nothing of a reading in which another daemon became the leader', async () => {
    const rounds: ReturnType<typeof startRounds> = startRounds((...asked) => {
      rounds.lead(false);
      return rounds.api.usage(...asked);
    }, currentRules(aBudget()));
    await firstRound(rounds);
    expect([await readBudgets(rounds.store), await readSummary(rounds.store)]).toEqual([undefined, undefined]);
    expect(rounds.gauges).toEqual(new Map());
    await rounds.rounds.close();
  });

  it('leave the budgets of the group alone while other policies are the newest or the clock is wrong', async () => {
    const rules = currentRules(aBudget());
    const rounds = startRounds(undefined, rules);
    await firstRound(rounds);
    const kept = await readBudgets(rounds.store);
    expect(kept).toHaveLength(1);
    rules.current = currentRules(aBudget({ name: 'renamed' })).current;
    rounds.permit(false);
    passTo(rounds.world, rounds.world.nowMs + HOUR_MS);
    await rounds.tick();
    expect(await readBudgets(rounds.store)).toEqual(kept);
    rounds.permit(true);
    await rounds.tick();
    expect(await readBudgets(rounds.store)).toMatchObject([{ policy: 'renamed' }]);
    await rounds.rounds.close();
  });

  it('decide nothing by what another leader has decided upon meanwhile', async () => {
    const store = createMemoryStore(createSteppedClock(0, () => false));
    const other = [{ policy: 'budget', account: 'main', spent: 7 }];
    let isFirst = true;
    const racing = {
      ...store,
      replaceDocument: async (...change: Parameters<typeof store.replaceDocument>) => {
        if (isFirst) await store.putDocument('budgets', 'all', JSON.stringify({ version: 1, value: other }));
        isFirst = false;
        return store.replaceDocument(...change);
      },
    };
    const rounds = startRounds(undefined, currentRules(aBudget({ month: { unit: 'cu_hours', amount: 0.1 } })), racing);
    await firstRound(rounds);
    expect(await readBudgets(store)).toEqual(other);
    expect(rounds.said.filter(({ event }) => event === 'ebb.budget_step')).toEqual([]);
    await rounds.rounds.close();
  });

  it('count the branches that a budget selects, and forget a budget that is gone', async () => {
    const rules = currentRules(
      aBudget({ month: { unit: 'usd', amount: 1 }, select: aSelector({ branches: ['main'] }) }),
    );
    const rounds = startRounds(undefined, rules);
    await firstRound(rounds);
    // No branch is known.
    expect(await readBudgets(rounds.store)).toEqual([]);
    const inAnHour = async () => {
      passTo(rounds.world, rounds.world.nowMs + HOUR_MS);
      await rounds.tick();
    };
    rules.current = currentRules(aBudget()).current;
    await inAnHour();
    expect(await readBudgets(rounds.store)).toHaveLength(1);
    rules.current = currentRules().current;
    await inAnHour();
    expect(await readBudgets(rounds.store)).toEqual([]);
    await rounds.rounds.close();
  });
});

describe('the digest of a week', () => {
  const receiver = (name: string, takes: Pick<Receiver, 'owners' | 'kinds'>): Receiver => ({
    ...{ name, to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], url: { from: 'text', text: 'http://127.0.0.1/' } },
    ...takes,
  });
  const rules = currentRules();
  const receivers = [receiver('web', { owners: ['team-web'] }), receiver('ops', { kinds: ['digest'] })];
  rules.current = {
    ...{ ...rules.current, notify: { receivers } },
    costs: { ...NO_COSTS, owners: [['one', 'team-web']] },
  };
  const entry = { projectId: 'one', kind: 'write', setHash: '', owner: 'team-web' } as const;
  const changed = { code: 'window', message: 'by a window' };
  const monday = START_MS + 7 * DAY_MS;

  it('comes once, from Monday 08:00 UTC on, from whichever daemon leads: for each owner what changed and what it cost', async () => {
    const rounds = startRounds(undefined, rules);
    const { store, world } = rounds;
    const told = async (name: string) =>
      (await store.outbox({ receiver: name, state: 'waiting', limit: 9 })).map(({ id, body }) => ({
        ...{ id, text: String(JSON.parse(body).text) },
      }));
    await store.appendHistory([
      { ...entry, computeId: 'ep-a', atMs: START_MS, reasons: [changed] },
      { ...entry, computeId: 'ep-b', atMs: monday - 1, reasons: [changed] },
      { ...entry, computeId: 'ep-b', atMs: monday - 1, kind: 'restart', reasons: [changed] },
      {
        ...entry,
        computeId: 'ep-c',
        atMs: monday - 1,
        reasons: [changed, { code: 'failed', message: 'not changed: failed' }],
      },
      { ...entry, computeId: 'ep-c', atMs: monday, reasons: [changed] },
    ]);
    await firstRound(rounds);
    passTo(world, monday + 8 * HOUR_MS - 1);
    await rounds.tick();
    // Of the week before the data nothing is told.
    expect(await told('ops')).toEqual([]);
    passTo(world, monday + 8 * HOUR_MS);
    await rounds.tick();
    const used = [...truthOf(world, { projectId: 'one', branchId: null })].filter(([startMs]) => startMs < monday);
    const cuHours = used.reduce((sum, [, cuSeconds]) => sum + cuSeconds / 3600, 0);
    const web = await told('web');
    expect(web).toMatchObject([{ id: 'digest:team-web:2026-11-23>web' }]);
    expect(web[0]?.text).toContain('2 changes and 1 restart without a change of 2 computes; ');
    expect(web[0]?.text).toContain(
      `; cost: ${cuHours.toFixed(1)} CU-hours ($${(cuHours * 0.2).toFixed(2)}); saved: unknown`,
    );
    const all = await told('ops');
    expect(all.map(({ id }) => id)).toEqual(['digest:team-web:2026-11-23>ops', 'digest:unowned:2026-11-23>ops']);
    await rounds.rounds.close();

    const next = startRounds(undefined, rules, store);
    await firstRound(next);
    passTo(next.world, monday + 30 * HOUR_MS);
    await next.tick();
    await next.tick();
    expect([await told('web'), await told('ops')]).toEqual([web, all]);
    expect([...rounds.failures, ...next.failures]).toEqual([]);
    await next.rounds.close();
  });

  it('says of how many hours of its projects an owner lacks the usage', async () => {
    const rounds = startRounds(undefined, rules);
    const startedAtMs = monday - 6 * HOUR_MS;
    // It must have used more than is shown.
    const awake = { ...{ state: 'active' as const, startedAtMs, updatedAtMs: startedAtMs }, minCu: 16, maxCu: 16 };
    rounds.computes.set('one', [aCompute({ ...awake, projectId: 'one', projectName: 'one', branchId: 'br-one-main' })]);
    passTo(rounds.world, monday + 8 * HOUR_MS);
    await firstRound(rounds);
    const bodies = (await rounds.store.outbox({ receiver: 'ops', state: 'waiting', limit: 9 })).map(({ body }) => body);
    expect(bodies[0]).toContain('team-web: ');
    expect(bodies[0]).toContain(', without 6 hours of unknown usage; ');
    expect(bodies[1]).not.toContain('unknown usage');
    await rounds.rounds.close();
  });

  it('comes no more two days later: a daemon that was first started then, or whose store has lost its data, sends none', async () => {
    const rounds = startRounds(undefined, rules);
    const { store, world } = rounds;
    await store.appendHistory([{ ...entry, computeId: 'ep-a', atMs: START_MS, reasons: [changed] }]);
    passTo(world, monday + 2 * DAY_MS + 8 * HOUR_MS + 1);
    await firstRound(rounds);
    expect(rounds.failures).toEqual([]);
    expect(await store.outbox({ receiver: 'ops', state: 'waiting', limit: 9 })).toEqual([]);
    await rounds.rounds.close();
  });

  it('waits after a first start until all projects are read, an hour at most, and then says what is missing', async () => {
    const ofBranches = currentRules();
    const costs = { ...NO_COSTS, owners: [['*/*', 'team-web']] as const };
    ofBranches.current = { ...rules.current, costs };
    const rounds = startRounds(undefined, ofBranches);
    const { store, world } = rounds;
    const told = async () =>
      (await store.outbox({ receiver: 'ops', state: 'waiting', limit: 9 })).map(({ body }) =>
        String(JSON.parse(body).text),
      );
    for (const [id, computes] of [
      ['one', 1],
      ['two', 0],
    ] as const)
      rounds.computes.set(id, computes === 0 ? [] : [aCompute({ projectId: id, projectName: id })]);
    rounds.unread.add('three');
    passTo(world, monday + 9 * HOUR_MS);
    await firstRound(rounds);
    expect(await told()).toEqual([]);
    passTo(world, monday + 10 * HOUR_MS);
    await rounds.tick();
    const texts = await told();
    expect(texts.join()).toContain('without its part of 1 project not read yet');
    expect(texts.join()).not.toContain(', not read yet:');
    await rounds.rounds.close();
  });
});
