import { describe } from 'vitest';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import { describeOutbox } from './store-outbox.contract.ts';

describe('outbox in memory', () => {
  const clock = createSteppedClock(0, () => false);
  describeOutbox(() => ({
    store: createMemoryStore(clock),
    createStore: async ({ outbox }) => createMemoryStore(clock, outbox),
  }));
});
