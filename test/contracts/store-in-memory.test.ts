import { describe } from 'vitest';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import { describeAuditPages } from './store-audit.contract.ts';
import { describeDocuments } from './store-documents.contract.ts';
import { describeOutbox } from './store-outbox.contract.ts';

describe('the store in memory', () => {
  const clock = createSteppedClock(0, () => false);
  describeOutbox(() => ({
    store: createMemoryStore(clock),
    createStore: async ({ outbox }) => createMemoryStore(clock, outbox),
  }));
  const paged = createMemoryStore(clock);
  describeAuditPages(() => ({ store: paged }));
  describeDocuments(() => {
    const store = createMemoryStore(clock);
    return { store, other: async () => store };
  });
});
