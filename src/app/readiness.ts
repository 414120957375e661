import type { Readiness } from '../ports/operator.ts';
import type { Context } from './context.ts';
import { listOf } from './outages.ts';

/** Ready: queue, store, policies, and a control API that answers to each account. Each check says what it found. */
export async function checkReadiness(context: Context): Promise<Readiness> {
  const apiDown = context.outages.current().get('control API');
  const checks = [
    await check('queue', () => context.queue.counts()),
    await check('store', () => context.store.storeId()),
    { name: 'policies', ok: true, message: `${context.policies.set.policies.length} in force` },
    { name: 'control API', ok: apiDown === undefined, message: apiDown ?? 'answers' },
    ...accountChecks(context),
  ];
  return { ready: checks.every(({ ok }) => ok), checks };
}

/** What can't be used names its account, and says what to do. */
function accountChecks({ api, outages }: Context): Readiness['checks'] {
  return api.accountStatus().map(({ account, key, message }) => {
    const trouble = message ?? outages.current().get(listOf(account));
    const fine = key === 'valid' ? 'the API key is accepted' : 'not asked yet';
    return { name: `account ${account}`, ok: trouble === undefined, message: trouble ?? fine };
  });
}

async function check(name: string, ask: () => Promise<unknown>): Promise<Readiness['checks'][number]> {
  try {
    await ask();
    return { name, ok: true, message: 'answers' };
  } catch (error) {
    return { name, ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}
