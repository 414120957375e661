import { expect, it } from 'vitest';
import { noteIfUnused } from '../../src/compose/store.ts';

it('a store that fails is not said to be unused, and does not fail the command before its answer', async () => {
  const settings = { queue: { shown: 'redis://r' }, group: 'g', apiUrl: 'https://api', accounts: [{ name: 'a' }] };
  const store = { generation: async () => undefined, projectIds: async () => [], timeMs: async () => 0 };
  const noted = (documents: () => Promise<unknown>) =>
    noteIfUnused({ ...store, documents } as never, settings as never);
  expect(await noted(async () => new Map())).toMatch(/^no daemon has used redis:..r for the group g yet: /);
  expect(await noted(() => Promise.reject(new Error('closed')))).toBeUndefined();
});
