import { createFullControlApi } from '../adapters/control-api/full-client.ts';
import type { ControlApiError } from '../ports/control-api.ts';
import type { Metrics } from '../ports/telemetry.ts';
import { readApiKey } from '../settings/api-key.ts';
import type { Settings } from '../settings.ts';

export interface WantedKey {
  settings: Settings;
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
export async function createProjectKey(
  wanted: WantedKey,
): Promise<{ ok: true; key: MadeKey } | { ok: false; problem: string }> {
  const { settings, organizationId, projectId, name } = wanted;
  const ownKey = readApiKey(settings.apiKey, 'write');
  if (!ownKey.ok) return ownKey;
  const api = createFullControlApi({
    baseUrl: settings.apiUrl,
    accounts: [{ name: settings.account, key: () => ownKey.value.reveal() }],
    allowPlainHttp: settings.allowPlainHttp,
    metrics: NO_METRICS,
  });
  try {
    const made = await api.createProjectKey({ account: settings.account, organizationId, projectId, name });
    if (!made.ok) return { ok: false, problem: explain(wanted, made.error) };
    return { ok: true, key: { ...made.value, projectId } };
  } finally {
    await api.close();
  }
}

function explain({ settings, organizationId, projectId }: WantedKey, error: ControlApiError): string {
  const { code, message } = error;
  if (error.outcomeUnknown) {
    return `no clear answer from ${settings.apiUrl} (${message}): look whether a key was made, and revoke it`;
  }
  switch (code) {
    case 'unauthorised':
      return `${settings.apiUrl} refuses the API key: set EBB_API_KEY to a valid one`;
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

const NO_METRICS: Metrics = { increment: () => {}, set: () => {}, clear: () => {}, observe: () => {} };
