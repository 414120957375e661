import { explainConnectError } from './opened-engine.ts';

/** Redis is there and will not do what it is asked, for a reason that an operator can do something about. */
const REFUSALS: readonly [pattern: RegExp, text: string][] = [
  [/\bOOM command not allowed/, 'it is out of memory: raise its maxmemory'],
  [/\bREADONLY\b/, 'it is a read-only replica: name the primary'],
  [/\bMISCONF\b/, 'it can not save to its disk'],
  [/\bNOREPLICAS\b/, 'it has too few replicas'],
  [/\bCLUSTERDOWN\b/, 'the cluster is down'],
  [/\bMASTERDOWN\b/, 'it is a replica that lost its primary'],
  [/\bLOADING\b/, 'it is loading its data'],
  [/\bBUSY Redis is busy/, 'it is busy with a script'],
  [/\bNOPERM\b/, 'its user may not do what ebb needs'],
];

const AWAY =
  /Connection is closed|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|isn't writeable|isn't ready|max retries per request|timed out|Socket timeout|Failed to refresh slots|startup nodes|Too many Cluster redirections|Cluster is (?:ended|disconnect)|TRYAGAIN|UNBLOCKED|sentinels are unreachable/i;

/** The reason that Redis gives for a refusal; undefined for other errors. */
function refusal(error: Error): string | undefined {
  const text = textOf(error);
  return REFUSALS.find(([pattern]) => pattern.test(text))?.[1];
}

/** True for an error that says nothing but that Redis is not there, or not in a state to work. */
export function isRedisAway(error: Error): boolean {
  return AWAY.test(textOf(error)) || refusal(error) !== undefined;
}

/** The message for callers while Redis is unavailable. */
export function awayMessage(error: Error): string {
  const refused = refusal(error);
  return refused === undefined ? 'Redis is not reachable' : `Redis does not work: ${refused}`;
}

/** Why it is away, in words without passwords and commands. */
export function explainRedisError(error: Error): string {
  const cause = causeOf(error);
  // All that is known of nodes that don't answer.
  if (cause !== error && cause.message === 'Connection is closed.') return 'no node answers';
  return refusal(error) ?? explainConnectError(cause);
}

/** The error of a node, where a Cluster only says that all of them failed. */
function causeOf(error: Error): Error {
  const { lastNodeError } = error as Error & { lastNodeError?: Error | null };
  return lastNodeError ?? error;
}

function textOf(error: Error): string {
  return `${(error as NodeJS.ErrnoException).code ?? ''} ${error.message} ${causeOf(error).message}`;
}
