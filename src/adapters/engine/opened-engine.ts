import type { Engine } from '../../ports/engine.ts';

/** The error's message is one line that says what to do and holds no password. */
export type OpenedEngine = { ok: true; engine: Engine } | { ok: false; error: EngineRefusal };

interface EngineRefusal {
  /** Another process has the embedded engine for itself. */
  code?: 'in_use';
  message: string;
}

export function refused(message: string, code?: 'in_use'): OpenedEngine {
  return { ok: false, error: { message, ...(code && { code }) } };
}

/** The end of every message about an unreachable server. */
export const START_IT = 'start it, or leave EBB_QUEUE_URL unset to use the embedded queue';

const EXPLANATIONS: readonly [pattern: RegExp, text: string][] = [
  [/53100|No space left/, 'its disk is full'],
  [/25006|read-only transaction/, 'it can only be read'],
  [/No such master|invalid reply: null/, 'the Sentinels know no primary of this name'],
  [/cluster support disabled/, 'it is no Cluster; write redis://HOST:PORT'],
  [/sentinels are unreachable.*Connection is closed/, 'no Sentinel answers'],
  [/ECONNREFUSED/, 'connection refused'],
  [/ENOTFOUND|EAI_AGAIN/, 'host not found'],
  [/ETIMEDOUT|timed? ?out|timeout/i, 'no answer in time'],
  [/EHOSTUNREACH|ENETUNREACH/, 'host unreachable'],
  [/ECONNRESET|EPIPE|socket hang up|Connection terminated|Connection is closed/i, 'the connection was closed'],
  [/WRONGPASS|invalid password|password authentication failed|28P01/i, 'user or password is wrong'],
  [/NOAUTH/i, 'it asks for a password'],
  [/CERT|self.signed|TLS|SSL|wrong version number/i, 'the TLS handshake failed'],
];

/** Why a connection failed, in words that hold neither a password nor the text of a command. */
export function explainConnectError(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  const text = `${code ?? ''} ${error.message}`;
  const known = EXPLANATIONS.find(([pattern]) => pattern.test(text));
  return known?.[1] ?? code ?? error.name;
}
