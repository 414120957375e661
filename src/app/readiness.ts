import type { Readiness } from '../ports/operator.ts';
import type { Context } from './context.ts';

/** Ready: queue, store, policies, and a control API that answers. Each check says what it found. */
export async function checkReadiness(context: Context): Promise<Readiness> {
  const apiDown = context.outages.current().get('control API');
  const checks = [
    await check('queue', () => context.queue.counts()),
    await check('store', () => context.store.storeId()),
    { name: 'policies', ok: true, message: `${context.policies.set.policies.length} in force` },
    { name: 'control API', ok: apiDown === undefined, message: apiDown ?? 'answers' },
  ];
  return { ready: checks.every(({ ok }) => ok), checks };
}

async function check(name: string, ask: () => Promise<unknown>): Promise<Readiness['checks'][number]> {
  try {
    await ask();
    return { name, ok: true, message: 'answers' };
  } catch (error) {
    return { name, ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}
