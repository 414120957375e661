import { expect, it } from 'vitest';
import { createRevisedEntries } from '../../src/adapters/store/revised-entries.ts';

it('entries stay the same objects as long as their texts do, so that what is derived from them is kept', async () => {
  const texts = new Map([['a', '{"id":"a","createdAtMs":1}']]);
  let revision = 0;
  const ask = createRevisedEntries({
    read: async () => ({ revision: String(++revision), texts: new Map(texts), endedIds: new Set() }),
    parse: (_id, text) => JSON.parse(text) as { id: string; createdAtMs: number },
  });
  const before = (await ask()).entries;
  texts.set('b', '{"id":"b","createdAtMs":2}');
  const after = (await ask()).entries;
  expect(after).toMatchObject([{ id: 'a' }, { id: 'b' }]);
  expect(after[0]).toBe(before[0]);
  texts.set('a', '{"id":"c","createdAtMs":1}');
  expect((await ask()).entries[0]).toMatchObject({ id: 'c' });
});
