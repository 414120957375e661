import type { ControlApiError } from '../ports/control-api.ts';
import type { Account } from '../settings/accounts.ts';
import type { Settings } from '../settings/settings.ts';

/** One line for people: the error and the remedy. */
export function explainApiError(settings: Settings, error: ControlApiError): string {
  const { apiUrl, accounts } = settings;
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
  if (status !== undefined && (code === 'forbidden' || code === 'not_found') && error.route !== 'GET /projects') {
    const owner = account === undefined ? 'this key' : `the key of account ${account.name}`;
    return `${apiUrl} answers ${status}: ${message}; it is not available with ${owner}, or not on its plan`;
  }
  if (code === 'throttled') {
    return `nothing can be sent for account ${error.account}: ${message}; the control API has asked to wait, or other programs use the account; try again in a few minutes`;
  }
  return status === undefined
    ? unreached(settings, error)
    : `${apiUrl} answers ${status}: ${message}; check EBB_API_URL, or try again later`;
}

function unreached({ apiUrl, proxy }: Settings, { message }: ControlApiError): string {
  if (proxy !== undefined) {
    return `cannot reach ${apiUrl} through ${proxy.shown}: ${message}; check ${proxy.variable} and EBB_API_URL`;
  }
  return `cannot reach ${apiUrl}: ${message}; check EBB_API_URL and the network`;
}

/** Says where to change an account's key. */
export function placeOfKey({ name, apiKey }: Account): string {
  if (apiKey === undefined || name === 'default') return 'EBB_API_KEY or EBB_API_KEY_FILE';
  if (apiKey.from === 'variable') return apiKey.variable;
  return apiKey.from === 'file' ? apiKey.file : `the keys in ${apiKey.folder}`;
}
