import { expect, it } from 'vitest';
import { historyView } from '../../src/adapters/http/page/history-view.tsx';

async function pageOf(query: Partial<Parameters<typeof historyView>[0]['query']>): Promise<string> {
  return String(await historyView({ lines: [], next: null, query: { show: 'audit', ...query } }));
}

it('most filters of the history are behind a line to open, and shown while one of them is set', async () => {
  const behind = /<details class="more"( open=""|)><summary>More filters<.summary>(.*?)<.details>/;
  const [, isOpen, fields = ''] = behind.exec(await pageOf({ kind: 'write' })) ?? [];
  expect(isOpen).toBe('');
  const names = ['compute', 'owner', 'policy', 'who', 'since', 'until'] as const;
  expect([...fields.matchAll(/<input id="(\w+)"/g)].map(([, name]) => name)).toEqual(names);
  for (const name of names) expect(behind.exec(await pageOf({ [name]: '2026-11-27' }))?.[1], name).toBe(' open=""');
});
