import type { StoredUsage } from '../app/usage/usage-account.ts';
import { MOST_PER_PAGE, type Operator } from '../ports/operator.ts';
import type { Settings } from '../settings/settings.ts';
import { openStoreToRead } from './stored-facts.ts';

export interface OpenStoredUsage extends StoredUsage {
  close(): Promise<void>;
}

/** Opens the collected usage: in the store, or from the daemon that has an embedded store. Undefined where neither can be read. */
export async function openStoredUsage(settings: Settings): Promise<OpenStoredUsage | undefined> {
  const stored = await openStoreToRead(settings);
  if (!stored.ok) return undefined;
  if ('opened' in stored) {
    const { store, close } = stored.opened;
    return { usageUnits: store.usageUnits, usage: store.usage, close };
  }
  if (!stored.inUse) return undefined;
  const { openOperator } = await import('./operator-access.ts');
  const opened = await openOperator({ settings, waitMs: 0 });
  if (!opened.ok) return undefined;
  const { operator, close } = opened.value;
  return { ...usageOfDaemon(operator), close };
}

/** Everything that a daemon keeps of an organization is read once. */
function usageOfDaemon(operator: Pick<Operator, 'usage'>): StoredUsage {
  const known = new Map<string, Promise<Map<string, Uint8Array>>>();
  const readOnce = (account: string) => {
    const reading = known.get(account) ?? readAll(operator, account);
    known.set(account, reading);
    return reading;
  };
  return {
    usageUnits: async (account) => [...(await readOnce(account)).keys()],
    async usage(account, units) {
      const all = await readOnce(account);
      return new Map(units.flatMap((unit) => (all.has(unit) ? [[unit, all.get(unit) as Uint8Array]] : [])));
    },
  };
}

/** Nothing if a page can't be had: a part would look like all of it. */
async function readAll(operator: Pick<Operator, 'usage'>, account: string): Promise<Map<string, Uint8Array>> {
  const all = new Map<string, Uint8Array>();
  let after: string | undefined;
  do {
    const page = await operator.usage({ account, limit: MOST_PER_PAGE, ...(after !== undefined && { after }) });
    if (!page.ok) return new Map();
    for (const { unit, bytes } of page.value.items) all.set(unit, Buffer.from(bytes, 'base64'));
    after = page.value.next ?? undefined;
  } while (after !== undefined);
  return all;
}
