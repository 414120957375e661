import { expect, it } from 'vitest';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { OPERATIONS_KEY } from '../../src/app/readings/reading.ts';
import { at, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');

it('a page of operations ends with the project that fills it, and the next begins there', async () => {
  const store = createMemoryStore(createSteppedClock(NOW, () => false));
  const ids = ['p-1', 'p-2', 'p-3', 'p-4', 'p-5'];
  await store.putUsage(OPERATIONS_KEY, new Map(ids.map((id) => [id, new Uint8Array(3 * 1024 * 1024)])));
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW, requestReconciles: async () => {} },
  });
  const pages: string[][] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await operator.usage({ account: OPERATIONS_KEY, limit: 100, ...(after !== '' && { after }) });
    if (!page.ok) throw new Error(page.error.message);
    pages.push(page.value.items.map(({ unit }) => unit));
    after = page.value.next ?? undefined;
  }
  expect(pages).toEqual([['p-1', 'p-2'], ['p-3', 'p-4'], ['p-5']]);
});
