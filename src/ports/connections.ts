import type { ClientSample } from '../domain/awake/client-activity.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { ConnectionSource } from '../domain/policy/policy.ts';

/** A source's count, without ebb's own sessions and those without a client. */
export interface ConnectionCount {
  connections: number;
  /** The value that the server reports. */
  maxConnections?: number;
  /** When Postgres counted, milliseconds since the epoch. A count of zero is returned again, with its first instant, until somebody connects. */
  countedAtMs?: number;
}

/** Stable codes of problems of a source, or of its answer about a compute. */
export const SOURCE_ERROR_CODES = [
  /** The settings do not allow the source. */
  'refused',
  /** A requirement of the source is missing or wrong: a variable, a file, a host, a query. */
  'misconfigured',
  /** Password, token or role. */
  'unauthorised',
  /** The server can't be verified, or doesn't support TLS. */
  'tls',
  /** No connection, or an answer that refuses. */
  'unavailable',
  'timeout',
  /** An answer without a value. */
  'no_data',
  /** Several values, or one that is not a number of connections. */
  'malformed',
] as const;

export interface CountError {
  /** `not_active`: the compute is not asked, since that would wake it. */
  code: 'not_active' | (typeof SOURCE_ERROR_CODES)[number];
  /** One line; it never holds a secret. */
  message: string;
}

/** `full`: the server accepts no more connections, so they could not be counted. */
export type CountOutcome = SourceAnswer<ConnectionCount | 'full'>;

/** What a source of counts or series answers, or why it gives no answer. */
export type SourceAnswer<T> = { ok: true; value: T } | { ok: false; error: CountError };

export interface CountRequest {
  /** For a Postgres source it must be read shortly before: a compute that is not active is not asked. */
  compute: Compute;
  /** The instant of the last count if that was zero, milliseconds since the epoch. */
  zeroCountedAtMs?: number;
}

/** Counts the client connections of computes. */
export interface ConnectionCounter {
  /** Outcomes by compute id; never throws. Unanswered requests end as `timeout` when the signal aborts. */
  count(requests: readonly CountRequest[], signal: AbortSignal): Promise<Map<string, CountOutcome>>;
  close(): Promise<void>;
}

/** The counters of all sources; each is opened when it is first asked for. */
export interface ConnectionCounters {
  of(source: ConnectionSource): ConnectionCounter;
  close(): Promise<void>;
}

/** Samples the sessions and statements of one Postgres; each sample is one short session. */
export interface ClientSampler {
  sample(signal: AbortSignal): Promise<SourceAnswer<ClientSample>>;
  /** Statements of all samples so far by id, without parameter values. */
  readonly texts: ReadonlyMap<string, string>;
}
