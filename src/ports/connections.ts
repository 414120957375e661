import type { ClientSample } from '../domain/awake/client-activity.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { ConnectionSource } from '../domain/policy/policy.ts';

/** A source's count. ebb's own sessions and those without a client are not in it. */
export interface ConnectionCount {
  connections: number;
  /** Absent where the source does not tell them apart. */
  byState?: { active: number; idle: number; idleInTransaction: number };
  /** As the server itself reports it. */
  maxConnections?: number;
  /** The instant of the count that this is taken from, where that was an earlier one: nothing has happened since. */
  countedAtMs?: number;
}

/** Stable codes for problems of a source, or of its answer about a compute. */
export const SOURCE_ERROR_CODES = [
  /** The settings do not allow the source. */
  'refused',
  /** A requirement of the source is missing or wrong: a variable, a file, a host, a query. */
  'misconfigured',
  /** Password, token or role. */
  'unauthorised',
  /** The other side can't be verified, or speaks no TLS. */
  'tls',
  /** No connection, or an answer that refuses. */
  'unavailable',
  'timeout',
  /** An answer without a value. */
  'no_data',
  /** Several values, or one that is no number of connections. */
  'malformed',
] as const;

/** Stable codes of why there is no count; `not_active`: the compute is not asked, since a question would wake it. */
export type CountErrorCode = 'not_active' | (typeof SOURCE_ERROR_CODES)[number];

export interface CountError {
  code: CountErrorCode;
  /** One line; it never holds a secret. */
  message: string;
}

/** `full`: the server accepts no more connections, so they could not be counted. */
export type CountOutcome =
  | { ok: true; value: ConnectionCount }
  | { ok: true; value: 'full' }
  | { ok: false; error: CountError };

export interface CountRequest {
  /** As the control API showed it a moment ago: a compute that is not active is not asked. */
  compute: Compute;
  /** The last count of zero, milliseconds since the epoch; absent if the last count was another. */
  zeroCountedAtMs?: number;
}

/** Counts the client connections of computes. */
export interface ConnectionCounter {
  /** One outcome for each compute, by its id; never throws. Open questions end as `timeout` when the signal aborts. */
  count(requests: readonly CountRequest[], signal: AbortSignal): Promise<Map<string, CountOutcome>>;
  close(): Promise<void>;
}

/** The counters of all sources; each is opened when it is first asked for. */
export interface ConnectionCounters {
  of(source: ConnectionSource): ConnectionCounter;
  close(): Promise<void>;
}

/** Looks at the sessions and statements of one Postgres; each look is one session that ends at once. */
export interface ClientSampler {
  sample(signal: AbortSignal): Promise<{ ok: true; value: ClientSample } | { ok: false; error: CountError }>;
  /** The statements of all samples so far by id, without values. */
  readonly texts: ReadonlyMap<string, string>;
}
