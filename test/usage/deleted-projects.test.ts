import { expect, it } from 'vitest';
import { readBudgets } from '../../src/app/usage/budget-store.ts';
import { readSummary } from '../../src/app/usage/cost-summary.ts';
import { aBudget, aCompute, aLimits, currentRules } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { firstRound, type Rounds, startRounds } from './rounds.ts';

const NAMES = { one: 'shop-one', two: 'dev-two', three: 'lab-three' };

const RULES = [
  aLimits({ name: 'lab', owner: 'team-lab', select: aSelector({ projects: ['lab-*'] }) }),
  aLimits({ name: 'previews', owner: 'team-previews', priority: 5, select: aSelector({ branches: ['preview/*'] }) }),
  aBudget({ name: 'dev', select: aSelector({ projects: ['dev-*'] }) }),
  aBudget({ name: 'of-previews', select: aSelector({ branches: ['preview/*'] }) }),
];

/** Three named projects with a compute in each branch; the rules of the settings know the first one. */
function rounds(store?: Parameters<typeof startRounds>[2]): Rounds {
  const rules = currentRules(...RULES);
  rules.current.costs = { ...rules.current.costs, owners: [['shop-*', 'team-shop']] };
  const started = startRounds(undefined, rules, store);
  for (const project of started.projects) {
    const projectName = NAMES[project.projectId as keyof typeof NAMES];
    project.name = projectName;
    const place = { account: 'main', projectId: project.projectId, projectName };
    started.computes.set(
      project.projectId,
      ['main', 'dev'].map((branch) =>
        aCompute({
          ...{ ...place, computeId: `ep-${project.projectId}-${branch}` },
          branchId: `br-${project.projectId}-${branch}`,
          branchName: branch === 'dev' ? 'preview/7' : 'main',
        }),
      ),
    );
  }
  return started;
}

async function shown({ store }: Rounds) {
  const { owners = [] } = (await readSummary(store)) ?? {};
  const budgets = (await readBudgets(store)) ?? [];
  return {
    costs: Object.fromEntries(owners.map(({ owner, cu_hours }) => [owner, cu_hours])),
    spent: Object.fromEntries(budgets.map(({ policy, spent }) => [policy, spent])),
  };
}

function remove({ projects, computes, unread }: Rounds, projectId: string): void {
  projects.splice(
    projects.findIndex((project) => project.projectId === projectId),
    1,
  );
  computes.delete(projectId);
  unread.delete(projectId);
}

it('leaves what deleted projects and branches have used with their owners and in their budgets', async () => {
  const running = rounds();
  await firstRound(running);
  const before = await shown(running);
  expect(before.costs).toMatchObject({ 'team-shop': expect.any(Number), 'team-lab': expect.any(Number) });
  expect(before.costs['team-previews']).toBeGreaterThan(0);
  expect(before.spent.dev).toBeGreaterThan(0);
  expect(before.spent['of-previews']).toBeGreaterThan(0);
  remove(running, 'one');
  remove(running, 'two');
  running.computes.set('three', []);
  await running.tick();
  expect(await shown(running)).toEqual(before);
  expect(running.failures).toEqual([]);
  await running.rounds.close();
});

it('does so after a restart, and takes no project for deleted before the list of projects was read', async () => {
  const running = rounds();
  await firstRound(running);
  const before = await shown(running);
  await running.rounds.close();
  const again = rounds(running.store);
  remove(again, 'two');
  again.listComparedAtMonotonicMs.clear();
  await firstRound(again);
  // Its last owner keeps it meanwhile.
  expect(await shown(again)).toEqual(before);
  again.listComparedAtMonotonicMs.set('main', 1);
  await again.tick();
  expect(await shown(again)).toEqual(before);
  await again.rounds.close();
});

it('gives the usage of a deleted branch that was never seen to who owns its whole project', async () => {
  const running = rounds();
  running.computes.set('three', []);
  await firstRound(running);
  const { costs } = await shown(running);
  expect(costs['team-lab']).toBeGreaterThan(0);
  await running.rounds.close();
});
