import { createControlApi } from '../adapters/control-api/control-api.ts';
import type { ControlApi, ControlApiError } from '../ports/control-api.ts';
import type { RateBudget } from '../ports/rate-budget.ts';
import type { Log, Metrics } from '../ports/telemetry.ts';
import type { KeyPurpose } from '../settings/api-key.ts';
import type { Settings } from '../settings/settings.ts';
import { apiAccounts, placeOfKey, viaProxy } from './accounts.ts';

/** The control API of the settings: what it can send is what the daemon may. */
export function openControlApi(options: {
  settings: Settings;
  purpose: KeyPurpose;
  /** Gets each key that is read, before it is used. */
  hide: (key: string) => void;
  metrics: Metrics;
  log?: Log;
  budget: RateBudget;
}): ControlApi {
  const { settings, purpose, hide, ...rest } = options;
  return createControlApi({
    baseUrl: settings.apiUrl,
    accounts: apiAccounts(settings.accounts, { purpose, hide }),
    allowPlainHttp: settings.allowPlainHttp,
    proxy: viaProxy(settings.proxy),
    ...rest,
  });
}

/** One line for the person at the terminal: what happened, and what to do. */
export function explainApiError({ apiUrl, accounts, proxy }: Settings, error: ControlApiError): string {
  const { code, status, message } = error;
  const account = accounts.find(({ name }) => name === error.account);
  const place = account === undefined ? 'EBB_API_KEY or EBB_API_KEY_FILE' : placeOfKey(account);
  if (code === 'unauthorised' && status !== undefined) {
    return `${apiUrl} refuses the API key of account ${error.account} (${status}: ${message}); check ${place}`;
  }
  if (code === 'unauthorised' || (code === 'forbidden' && status === undefined)) {
    return `account ${error.account}: ${message}; check ${place}`;
  }
  if (code === 'forbidden' && error.route === 'GET /projects') {
    return `${apiUrl} does not let the key of account ${error.account} list projects (${status}: ${message}); if it is scoped to a project, use a key of the organization, or api_keys_folder`;
  }
  if (code === 'throttled') {
    return `nothing can be sent for account ${error.account}: ${message}; the control API has asked to wait, or other programs use the account; try again in a few minutes`;
  }
  if (status === undefined && proxy !== undefined) {
    return `cannot reach ${apiUrl} through ${proxy.shown}: ${message}; check ${proxy.variable} and EBB_API_URL`;
  }
  if (status === undefined) return `cannot reach ${apiUrl}: ${message}; check EBB_API_URL and the network`;
  return `${apiUrl} answers ${status}: ${message}; check EBB_API_URL, or try again later`;
}
