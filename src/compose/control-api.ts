import { randomUUID } from 'node:crypto';
import { systemClock } from '../adapters/clock/system-clock.ts';
import type { ApiAccount, KeySource } from '../adapters/control-api/accounts.ts';
import { createControlApi } from '../adapters/control-api/control-api.ts';
import type { Transport } from '../adapters/control-api/http-transport.ts';
import { keyFromFile, keysFromFolder } from '../adapters/control-api/key-files.ts';
import type { Patience } from '../adapters/control-api/repeat-limit.ts';
import type { Result } from '../common/result.ts';
import { WAITS } from '../common/waits.ts';
import { isoInstant } from '../domain/time/units.ts';
import type { Clock, NewId } from '../ports/clock.ts';
import type { ControlApi } from '../ports/control-api.ts';
import type { RateBudget } from '../ports/rate-budget.ts';
import type { Log, Metrics } from '../ports/telemetry.ts';
import type { Account } from '../settings/accounts.ts';
import { type ApiKeySource, type KeyPurpose, readApiKey } from '../settings/api-key.ts';
import type { Settings } from '../settings/settings.ts';

/** Opens the client of the control API for daemons and commands. It can send only the requests that a daemon may send. */
export function openControlApi(options: {
  settings: Settings;
  purpose: KeyPurpose;
  /** Called with each key before its first use, so that logs hide it. */
  hide: (key: string) => void;
  metrics: Metrics;
  log?: Log;
  budget: RateBudget;
  clock?: Clock;
  newId?: NewId;
  /** 0..1, for the jitter of waits. */
  random?: () => number;
  /** Commands give a patience, since a person waits for them. */
  patience?: Patience;
  /** Replaces the transport over HTTP. */
  transport?: Transport;
}): ControlApi {
  const { settings, purpose, hide, ...rest } = options;
  const accounts = apiAccounts(settings.accounts, { purpose, hide });
  return createControlApi({ ...clientOptions(settings), accounts, ...rest });
}

/** The options of any client of the control API that settings and system determine. */
export function clientOptions({ apiUrl, allowPlainHttp, proxy }: Settings) {
  const viaProxy = proxy && { url: proxy.url.reveal(), except: proxy.except };
  const system = { clock: systemClock(), newId: randomUUID, random: Math.random };
  return { baseUrl: apiUrl, allowPlainHttp, proxy: viaProxy, ...system };
}

/** Reads the keys before anything runs. With several accounts, an unreadable key file is accepted here, since each call reads the file again. */
export function readKeysAtStart(accounts: readonly Account[], purpose: KeyPurpose): Result<string[]> {
  const problems: string[] = [];
  const keys: string[] = [];
  for (const { apiKey } of accounts) {
    if (apiKey?.from === 'folder') continue;
    const key = readApiKey(apiKey, purpose);
    if (key.ok) keys.push(key.value.reveal());
    else if (apiKey?.from !== 'file' || accounts.length === 1) problems.push(key.problem);
  }
  return problems.length === 0 ? { ok: true, value: keys } : { ok: false, problem: problems.join('\n') };
}

export function purposeOf({ mode }: Pick<Settings, 'mode'>): KeyPurpose {
  return mode === 'enforce' ? 'write' : 'read';
}

/** The accounts for the client of the control API. Calls `hide` with each key before its first use. */
export function apiAccounts(
  accounts: readonly Account[],
  { purpose, hide }: { purpose: KeyPurpose; hide: (key: string) => void },
): ApiAccount[] {
  const hidden = new Set<string>();
  const hiding =
    (read: KeySource): KeySource =>
    async (question) => {
      const key = (await read(question)).trim();
      if (!hidden.has(key)) hide(key);
      hidden.add(key);
      return key;
    };
  return accounts.map(({ name, apiKey, organization }) => {
    const source = apiKey?.from === 'folder' ? keysFromFolder(apiKey.folder) : { key: singleKey(apiKey, purpose) };
    return { ...source, name, key: hiding(source.key), ...(organization !== undefined && { organization }) };
  });
}

function singleKey(source: ApiKeySource | undefined, purpose: KeyPurpose): KeySource {
  if (source?.from === 'file') return keyFromFile(source.file);
  return () => {
    const key = readApiKey(source, purpose);
    if (!key.ok) throw new Error(key.problem);
    return key.value.reveal();
  };
}

/** How long commands try to connect, in milliseconds: enough for a server or proxy that restarts, and short for a wrong address. */
const UNREACHED_MS = 10_000;

/** The patience of a command: it tells the person that it waits for the API, and gives up soon if no connection can be made. */
export function patienceOf({ apiUrl }: Pick<Settings, 'apiUrl'>): Patience {
  return {
    unreachedMs: UNREACHED_MS,
    onWait: ({ status, message }, untilMs) => {
      const problem = status === undefined ? `cannot reach ${apiUrl}` : `${apiUrl} answers ${status}`;
      const until = isoInstant(untilMs).slice(11, 19);
      WAITS.publish(`${problem}: ${message}; trying again until ${until} UTC at the latest (Ctrl-C stops)`);
    },
  };
}

/** Discards metrics. Commands have none, since nobody scrapes them. */
export const NO_METRICS: Metrics = { increment: () => {}, set: () => {}, clear: () => {}, observe: () => {} };
