/** A policy set after parsing: complete, validated, and without positions in files. src/policy builds it from YAML. */

import { MINUTE_MS } from '../time/units.ts';
import type { PolicyKind, PolicyOf } from './kinds/kinds.ts';

export type Policy = PolicyOf<PolicyKind>;

export interface PolicySet {
  /** Sorted by the bytes of the files' paths, then as written. "Later" refers to this order. */
  policies: readonly Policy[];
  /** Sources, by the names that headroom policies and guards use. */
  sources: ReadonlyMap<string, ConnectionSource>;
  /** Identifies the content of the set; comments and formatting of the files don't matter. */
  hash: string;
}

/* Sources of connection counts, as policies and settings define them. Secrets are only named here, never stored. */

interface SourceBase {
  name: string;
  team?: string;
  /** The path of the file that defines the source, as it was given; relative paths in the file start from its folder. */
  file: string;
  /** The interval of counts, in milliseconds. */
  everyMs: number;
  /** Why the source is never queried, such as an address in a policy file that the settings do not allow. */
  refused?: string;
}

/** The place of a secret: an environment variable, or a file that contains nothing else. */
export type SecretPlace = { from: 'variable'; name: string } | { from: 'file'; path: string };

/** A Prometheus server. In its query `$compute`, `$project` and `$branch` are replaced by ids. */
export interface PrometheusSource extends SourceBase {
  from: 'prometheus';
  url: string;
  /** Counts connections; absent for a source that only guards ask. */
  query?: string;
  token?: SecretPlace;
}

/** Queries each compute's own server; `$host` in the connection string is replaced by the host that the control API reports. */
export interface PostgresSource extends SourceBase {
  from: 'postgres';
  dsn: SecretPlace | { from: 'text'; text: string };
}

export type ConnectionSource = PrometheusSource | PostgresSource;

/** True unless only guards can ask the source. */
export function countsConnections(source: ConnectionSource): boolean {
  return source.from === 'postgres' || source.query !== undefined;
}

/** The default interval of counts, in milliseconds. */
export const DEFAULT_SOURCE_EVERY_MS = MINUTE_MS;

const SHORT_HASH_LENGTH = 12;

/** The part of a policy set's hash that people are shown. */
export function shortHash(hash: string): string {
  return hash.slice(0, SHORT_HASH_LENGTH);
}

/** True if `typed` is the hash, or a prefix of it that is at least as long as {@link shortHash}. */
export function isHashOf(typed: string, hash: string): boolean {
  return typed.length >= SHORT_HASH_LENGTH && hash.startsWith(typed);
}
