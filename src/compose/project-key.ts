import { createFullControlApi } from '../adapters/control-api/full-client.ts';
import type { Result } from '../common/result.ts';
import type { ControlApiError } from '../ports/control-api.ts';
import type { Account } from '../settings/accounts.ts';
import { type ApiKeySource, readApiKey } from '../settings/api-key.ts';
import type { Settings } from '../settings/settings.ts';
import { NO_METRICS, placeOfKey, processSources, viaProxy } from './control-api.ts';

export interface WantedKey {
  settings: Settings;
  /** Whose key makes it; needed only where there are several accounts. */
  account: string | undefined;
  organizationId: string;
  projectId: string;
  name: string;
}

export interface MadeKey {
  keyId: number;
  /** Secret: shown or written once, by who asked for it. */
  key: string;
  name: string;
  projectId: string;
  createdAtMs: number;
}

/** Makes a project-scoped key on the control API, or says in one line why there is none and what to do. */
export async function createProjectKey(wanted: WantedKey): Promise<Result<MadeKey>> {
  const { settings, organizationId, projectId, name } = wanted;
  const own = chooseAccount(settings.accounts, wanted.account);
  if (!own.ok) return own;
  const { account, source } = own.value;
  const ownKey = readApiKey(source, 'write');
  if (!ownKey.ok) return ownKey;
  const api = createFullControlApi({
    baseUrl: settings.apiUrl,
    accounts: [{ name: account.name, key: () => ownKey.value.reveal() }],
    allowPlainHttp: settings.allowPlainHttp,
    proxy: viaProxy(settings.proxy),
    metrics: NO_METRICS,
    ...processSources(),
  });
  try {
    const made = await api.createProjectKey({ account: account.name, organizationId, projectId, name });
    if (!made.ok) return { ok: false, problem: explain(wanted, account, made.error) };
    return { ok: true, value: { ...made.value, projectId } };
  } finally {
    await api.close();
  }
}

type ChosenAccount = Result<{ account: Account; source: ApiKeySource | undefined }>;

function chooseAccount(accounts: readonly Account[], wanted: string | undefined): ChosenAccount {
  const names = accounts.map(({ name }) => name).join(', ');
  const account = wanted === undefined ? accounts[0] : accounts.find(({ name }) => name === wanted);
  if (account === undefined) return { ok: false, problem: `there is no account ${wanted}: use one of ${names}` };
  if (wanted === undefined && accounts.length > 1) {
    return { ok: false, problem: `there are several accounts: say with --account which one makes the key (${names})` };
  }
  const { name, apiKey } = account;
  if (apiKey?.from !== 'folder') return { ok: true, value: { account, source: apiKey } };
  return { ok: false, problem: `account ${name} has project-scoped keys, which make no others: use a personal key` };
}

function explain({ settings, organizationId, projectId }: WantedKey, account: Account, error: ControlApiError): string {
  const { code, message } = error;
  if (error.outcomeUnknown) {
    return `no clear answer from ${settings.apiUrl} (${message}): look whether a key was made, and revoke it`;
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
      return `${settings.apiUrl} can not be reached (${message}): no key was made, try again`;
    default:
      return `no key was made: ${message}`;
  }
}
