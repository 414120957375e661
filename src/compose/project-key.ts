import { createKeyClient } from '../adapters/control-api/key-client.ts';
import type { Result } from '../common/result.ts';
import type { ControlApiError } from '../ports/control-api.ts';
import { type Account, chooseAccount } from '../settings/accounts.ts';
import { readApiKey } from '../settings/api-key.ts';
import type { Settings } from '../settings/settings.ts';
import { openCommandBudget } from './command-budget.ts';
import { clientOptions, NO_METRICS, patienceOf } from './control-api.ts';
import { placeOfKey } from './explain-api-error.ts';

interface WantedKey {
  settings: Settings;
  /** The account whose key makes the new one; required if there are several. */
  account: string | undefined;
  organizationId: string;
  projectId: string;
  name: string;
}

interface MadeKey {
  keyId: number;
  /** Secret: shown or written only once. */
  key: string;
  name: string;
  projectId: string;
  createdAtMs: number;
}

/** Makes a project-scoped key on the control API. */
export async function createProjectKey(wanted: WantedKey): Promise<Result<MadeKey>> {
  const { settings, organizationId, projectId, name } = wanted;
  const chosen = chooseAccount(settings.accounts, wanted.account, 'makes the key');
  if (!chosen.ok) return chosen;
  const account = chosen.value;
  if (account.apiKey?.from === 'folder') {
    const problem = `account ${account.name} has project-scoped keys, which cannot make keys: use a personal key`;
    return { ok: false, problem };
  }
  const personalKey = readApiKey(account.apiKey, 'write');
  if (!personalKey.ok) return personalKey;
  const options = clientOptions(settings);
  const { budget, close } = await openCommandBudget({ settings, clock: options.clock });
  const keys = createKeyClient({
    ...options,
    accounts: [{ name: account.name, key: () => personalKey.value.reveal() }],
    metrics: NO_METRICS,
    patience: patienceOf(settings),
    budget,
  });
  try {
    const made = await keys.createProjectKey({ account: account.name, organizationId, projectId, name });
    if (!made.ok) return { ok: false, problem: explain(wanted, account, made.error) };
    return { ok: true, value: { ...made.value, projectId } };
  } finally {
    await keys.close();
    await close();
  }
}

function explain({ settings, organizationId, projectId }: WantedKey, account: Account, error: ControlApiError): string {
  const { code, message } = error;
  if (error.outcomeUnknown) {
    return `no clear answer from ${settings.apiUrl} (${message}): check whether a key was made, and revoke it`;
  }
  switch (code) {
    case 'unauthorised':
      return `${settings.apiUrl} refuses the API key: set a valid one (${placeOfKey(account)})`;
    case 'forbidden':
      return `this API key may not make keys in ${organizationId} (${message}): use a personal key of one of its members`;
    case 'not_found':
      return `${organizationId} has no project ${projectId} that this API key can see (${message}): check --org and --project`;
    case 'unavailable':
    case 'throttled':
      return `${settings.apiUrl} cannot be reached (${message}): no key was made, try again`;
    default:
      return `no key was made: ${message}`;
  }
}
