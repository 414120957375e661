import type { Readiness } from '../ports/operator.ts';
import type { DaemonContext } from './context.ts';
import { describeOffset } from './group-time.ts';
import { listOf } from './outages.ts';
import { describeSets } from './policy-sets.ts';

/** Ready: queue, store, policies, the right time, and a control API that answers to each account. Each check says what it found. */
export async function checkReadiness(context: DaemonContext): Promise<Readiness> {
  const apiDown = context.outages.current().get('control API');
  const checks = [
    await check('queue', () => context.queue.counts()),
    await check('store', () => context.store.storeId()),
    { name: 'policies', ok: true, message: describeSets(context) },
    clockCheck(context),
    { name: 'control API', ok: apiDown === undefined, message: apiDown ?? 'answers' },
    ...accountChecks(context),
  ];
  return { ready: checks.every(({ ok }) => ok), checks };
}

function clockCheck({ groupTime }: DaemonContext): Readiness['checks'][number] {
  const offsetMs = groupTime.wasTooFarOff();
  if (offsetMs === undefined) return { name: 'clock', ok: true, message: "agrees with the group's time" };
  return { name: 'clock', ok: false, message: `${describeOffset(offsetMs)}; set it right` };
}

/** What can't be used names its account, and says what to do. */
function accountChecks({ api, outages }: DaemonContext): Readiness['checks'] {
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
