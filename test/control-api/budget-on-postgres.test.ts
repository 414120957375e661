import { expect, test } from 'vitest';
import { createPostgresBudgets } from '../../src/adapters/control-api/postgres-budget.ts';
import { postgresTestEngine, type TestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { describeBudgetStore, LIMITS } from './budget-store.contract.ts';

function budgetsOn({ engine, reset, close }: TestEngine) {
  if (engine.kind !== 'postgres') throw new Error('not a Postgres');
  return {
    open: (limits: typeof LIMITS, clock?: () => number) =>
      createPostgresBudgets({ engine, limits, ...(clock && { clock }) }),
    reset,
    close,
  };
}

describeWith('postgres', 'budgets on a Postgres server', () => {
  describeBudgetStore(async () => budgetsOn(await postgresTestEngine()), { runs: 10 });

  test('a row that cannot be read counts as missing', async () => {
    const server = await postgresTestEngine();
    const { engine } = server;
    if (engine.kind !== 'postgres') throw new Error('not a Postgres');
    const budgets = await budgetsOn(server).open(LIMITS);
    const wanted = { route: 'GET', count: 1, priority: 'read' } as const;
    await budgets.learn('main', 60_000);
    expect((await budgets.grant('main', wanted)).afterMs).toEqual([]);
    await engine.pool.query("UPDATE ebb_api_log SET state = '{}'");
    expect((await budgets.grant('main', wanted)).afterMs).toEqual([0]);
    await server.close();
  });
});
