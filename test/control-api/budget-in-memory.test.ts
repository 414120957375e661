import { describe } from 'vitest';
import { createMemoryBudgets } from '../../src/adapters/control-api/group-budget.ts';
import type { BudgetStore } from '../../src/adapters/control-api/rate-budget.ts';
import { describeBudgetStore } from './budget-store.contract.ts';

describe('budgets in this process', () =>
  describeBudgetStore(
    async () => {
      // All views are one there: a process has one log, by the clock that asks last.
      let one: BudgetStore | undefined;
      let ask = () => performance.now();
      return {
        async open(limits, clock = () => performance.now()) {
          ask = clock;
          one ??= createMemoryBudgets({ limits, assumesUnused: false, clock: { monotonicMs: () => ask() } });
          return one;
        },
        reset: async () => {
          one = undefined;
        },
        close: async () => {},
      };
    },
    { runs: 100 },
  ));
