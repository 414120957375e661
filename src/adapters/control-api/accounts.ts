import type { Metrics } from '../../ports/telemetry.ts';
import { resultOf } from './answers.ts';
import type { SendOnce } from './api-call.ts';
import type { SendExchange } from './exchanges.ts';
import type { Exchange } from './http-transport.ts';
import { createRedactor } from './redaction.ts';

export interface ApiAccount {
  name: string;
  /** Asked before every request, so that a key can change. */
  key: () => Promise<string> | string;
}

/** Puts the account's key on a call, and keeps every key that was ever used out of what comes back. */
export function withAccountKeys(
  send: SendExchange,
  options: { accounts: readonly ApiAccount[]; metrics: Metrics },
): SendOnce {
  const { metrics } = options;
  const accounts = new Map(options.accounts.map((account) => [account.name, account]));
  const redactor = createRedactor();
  return async (call, signal) => {
    const account = accounts.get(call.account);
    if (account === undefined) return resultOf(call, noKey(`there is no account named ${call.account}`), redactor);
    const key = await keyOf(account);
    if (key === undefined) return resultOf(call, noKey('the key can not be read'), redactor);
    redactor.hide(key);
    const exchange = await send(call, key, signal);
    const valid = showsKeyValid(exchange);
    if (valid !== undefined) metrics.set('ebb_api_key_valid', { account: account.name }, valid ? 1 : 0);
    return resultOf(call, exchange, redactor);
  };
}

async function keyOf(account: ApiAccount): Promise<string | undefined> {
  try {
    const key = (await account.key()).trim();
    return key === '' ? undefined : key;
  } catch {
    return undefined;
  }
}

function noKey(message: string): Exchange {
  return { kind: 'failure', code: 'unauthorised', mayHaveArrived: false, message: `not sent: ${message}` };
}

/** A 401 says no; what was understood, even if it was refused, says yes; trouble and throttling say nothing. */
function showsKeyValid(exchange: Exchange): boolean | undefined {
  if (exchange.kind === 'failure') return undefined;
  if (exchange.status === 401) return false;
  return exchange.status < 500 && exchange.status !== 429 ? true : undefined;
}
