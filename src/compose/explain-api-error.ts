import type { ControlApiError } from '../ports/control-api.ts';
import type { Account } from '../settings/accounts.ts';
import type { Settings } from '../settings/settings.ts';

/** One line for people: the error and the remedy. */
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

/** Says where to change an account's key. */
export function placeOfKey({ name, apiKey }: Account): string {
  if (apiKey === undefined || name === 'default') return 'EBB_API_KEY or EBB_API_KEY_FILE';
  if (apiKey.from === 'variable') return apiKey.variable;
  return apiKey.from === 'file' ? apiKey.file : `the keys in ${apiKey.folder}`;
}
