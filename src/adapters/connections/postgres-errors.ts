import type { CountError, CountOutcome } from '../../ports/connections.ts';
import { failed } from './outcomes.ts';

/** SQLSTATE, or a code of Node, and what it means here. */
const CODES: ReadonlyMap<string, CountError['code']> = new Map<string, CountError['code']>([
  ['28P01', 'unauthorised'],
  ['28000', 'unauthorised'],
  ['42501', 'unauthorised'],
  ['3D000', 'misconfigured'],
  ['57014', 'timeout'],
  ['ETIMEDOUT', 'timeout'],
  ['ENOTFOUND', 'unavailable'],
]);
const TOO_MANY_CONNECTIONS = '53300';
const TLS = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;

/** What an error of a look means. A server that accepts nobody any more is full: that is an answer. */
export function explainPostgresError(error: unknown): CountOutcome {
  const code = codeOf(error);
  const message = error instanceof Error && error.message !== '' ? error.message : code;
  if (code === TOO_MANY_CONNECTIONS && !isOwnLimit(error)) return { ok: true, value: 'full' };
  if (TLS.test(code) || /SSL|certificate/i.test(message)) return failed('tls', message);
  if (/timeout/i.test(message)) return failed('timeout', message);
  return failed(CODES.get(code) ?? 'unavailable', message);
}

/** True if the limit is of the role or the database: of the server it says nothing. Words are translated, names of routines aren't. */
function isOwnLimit(error: unknown): boolean {
  const routine = error instanceof Error && 'routine' in error ? error.routine : undefined;
  return routine === 'InitializeSessionUserId' || routine === 'CheckMyDatabase';
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
