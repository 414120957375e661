import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { startKeyChecks } from '../../src/app/fleet/key-checks.ts';
import type { AccountStatus } from '../../src/ports/control-api.ts';

/** The checks of a daemon; `check` runs one. */
function keyChecks(deps: object) {
  let check = async () => {};
  let last: Promise<void> | undefined;
  const clock = {
    ...{ now: () => 0, monotonicMs: () => 0 },
    every(_intervalMs: number, tick: () => Promise<void>) {
      check = () => {
        last = tick();
        return last;
      };
      return { close: async () => last };
    },
  };
  const runInBackground = async (_task: string, round: () => Promise<void>) => round();
  const { close } = startKeyChecks({
    ...deps,
    clock,
    runInBackground,
    fleet: createFleet({ clock } as never),
  } as never);
  return { check, close };
}

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
  const { check } = keyChecks({ api, queue });
  await check();
  expect([asked, jobs]).toEqual([['b'], []]);
  working.add('b');
  await check();
  await check();
  expect([asked, jobs]).toEqual([['b', 'b'], ['inventory']]);
});

it('an account that does not answer holds up neither the others nor the end', async () => {
  const statuses = ['hangs', 'works'].map((account) => ({ account, key: 'refused', keyTrouble: { state: 'refused' } }));
  const jobs: string[] = [];
  const api = {
    accountStatus: () => statuses,
    async *listProjects({ account = '', signal }: { account?: string; signal?: AbortSignal }) {
      if (account === 'hangs') await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      else statuses.splice(1);
      yield { ok: true, value: [] };
    },
  };
  const { check, close } = keyChecks({ api, queue: { add: async (name: string) => void jobs.push(name) } });
  const checked = check();
  await expect.poll(() => jobs).toEqual(['inventory']);
  await close();
  await checked;
});
