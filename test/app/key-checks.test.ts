import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { checkKeys } from '../../src/app/fleet/key-checks.ts';
import type { AccountStatus } from '../../src/ports/control-api.ts';

it('only accounts whose key is refused or missing are asked for their list, and the inventory runs once one works', async () => {
  const statuses = new Map<string, AccountStatus>([
    ['a', { account: 'a', key: 'valid' }],
    ['b', { account: 'b', key: 'refused', keyTrouble: { state: 'refused' } }],
    ['c', { account: 'c', key: 'valid', keyTrouble: { state: 'missing', endedAgoMs: 5 } }],
    // Each of its projects has a key of its own.
    ['d', { account: 'd', key: 'refused' }],
  ]);
  const working = new Set<string>();
  const asked: (string | undefined)[] = [];
  const jobs: string[] = [];
  const clock = { now: () => 0, monotonicMs: () => 0 };
  const api = {
    accountStatus: () => [...statuses.values()],
    async *listProjects({ account = '' }: { account?: string }) {
      asked.push(account);
      if (working.has(account)) {
        statuses.set(account, { account, key: 'valid', keyTrouble: { state: 'refused', endedAgoMs: 0 } });
        yield { ok: true, value: [] };
      } else yield { ok: false, error: { code: 'unauthorised', route: '', account, message: 'not sent' } };
    },
  };
  const queue = { add: async (name: string) => void jobs.push(name) };
  const check = () => checkKeys({ api, queue, clock, fleet: createFleet({ clock } as never) } as never);
  await check();
  expect([asked, jobs]).toEqual([['b'], []]);
  working.add('b');
  await check();
  await check();
  expect([asked, jobs]).toEqual([['b', 'b'], ['inventory']]);
});
