import { expect, it } from 'vitest';
import { createListFacts } from '../../src/app/fleet/list-facts.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';

const DAY_MS = 86_400_000;
const API_URL = 'https://api.example/v2';

function aGroup() {
  const documents = memoryDocumentStore();
  const time = { ms: Date.parse('2026-03-02T08:00:00Z') };
  const store = { ...documents, timeMs: async () => time.ms };
  /** A daemon that has just started; `verified`: what its settings say. */
  async function start({ verified, apiUrl = API_URL }: { verified?: boolean; apiUrl?: string } = {}) {
    const listShowsChanges = new Map(verified === undefined ? [] : [['a', verified]]);
    const { exchange } = createListFacts({ fleet: { listShowsChanges }, store, apiUrl });
    await exchange();
    return {
      knows: () => listShowsChanges.get('a'),
      exchange,
      async learn(shows: boolean) {
        listShowsChanges.set('a', shows);
        await exchange();
      },
    };
  }
  return { time, documents, start };
}

it('what a daemon has learned of a list is known to the others, and after a restart', async () => {
  const { start } = aGroup();
  const [one, other] = [await start(), await start()];
  expect(one.knows()).toBeUndefined();
  await one.learn(true);
  await other.exchange();
  expect([other.knows(), (await start()).knows()]).toEqual([true, true]);
  await other.learn(false);
  await one.exchange();
  expect([one.knows(), (await start()).knows()]).toEqual([false, false]);
});

it('that a list hides changes is forgotten after a day by all daemons, and learned again', async () => {
  const { start, time } = aGroup();
  const [one, other] = [await start(), await start()];
  await one.learn(false);
  await other.exchange();
  time.ms += DAY_MS - 1;
  for (const each of [one, other]) await each.exchange();
  expect([one.knows(), other.knows()]).toEqual([false, false]);
  time.ms += 1;
  for (const each of [one, other, one]) await each.exchange();
  expect([one.knows(), other.knows(), (await start()).knows()]).toEqual([undefined, undefined, undefined]);
  await other.learn(true);
  await one.exchange();
  expect(one.knows()).toBe(true);
  await one.learn(false);
  await other.exchange();
  expect(other.knows()).toBe(false);
});

it('that a list shows changes is known for longer than a day', async () => {
  const { start, time } = aGroup();
  await (await start()).learn(true);
  time.ms += 30 * DAY_MS;
  expect((await start()).knows()).toBe(true);
});

it('what settings say is not stored; it is contradicted only by a list that hides changes, for a day', async () => {
  const { start, time } = aGroup();
  const verified = await start({ verified: true });
  expect((await start()).knows()).toBeUndefined();
  await verified.learn(false);
  expect((await start({ verified: true })).knows()).toBe(false);
  time.ms += DAY_MS;
  await verified.exchange();
  expect(verified.knows()).toBe(true);
  await (await start()).learn(true);
  expect((await start({ verified: false })).knows()).toBe(false);
});

it('facts of another control API or of another version count as absent; a store that has lost them gets them again', async () => {
  const { start, documents } = aGroup();
  const one = await start();
  await one.learn(true);
  expect((await start({ apiUrl: 'https://other.example' })).knows()).toBeUndefined();
  const [[name, text]] = [...(await documents.documents('list-shows-changes'))] as [[string, string]];
  await documents.putDocument('list-shows-changes', name, text.replace('"version":1', '"version":2'));
  expect((await start()).knows()).toBeUndefined();
  await documents.deleteDocuments('list-shows-changes', [name]);
  await one.exchange();
  expect([one.knows(), (await start()).knows()]).toEqual([true, true]);
});
