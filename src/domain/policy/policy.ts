/**
 * A policy set once its text has been read: complete, checked, without places. `policy/` makes it from YAML; nothing here knows about
 * text.
 */

import type { PolicyKind, PolicyOf } from './kinds/kinds.ts';

/** A policy of any kind of the registry. */
export type Policy = PolicyOf<PolicyKind>;

export interface PolicySet {
  /** In the order of the language: files in byte order of their paths, then as written. "Later" means in this order. */
  policies: readonly Policy[];
  /** Sources of connection counts, by the name that headroom policies use. */
  sources: ReadonlyMap<string, ConnectionSource>;
  /** Identifies the meaning of the set: equal for equal policies, whatever the comments and blanks of their files. */
  hash: string;
}

/** A source of connection counts, as policies and settings define it. Secrets are only named here, never held. */

interface SourceBase {
  name: string;
  /** The team whose file defines it. */
  team?: string;
  /** The file that defines it, as it was named; relative paths in it start from its folder. */
  file: string;
  /** The interval of counts, in milliseconds. */
  everyMs: number;
  /** Why it is never asked, for people: a destination in a policy file must be allowed by the settings. */
  refused?: string;
}

/** The place of a secret: a variable, or a file that contains nothing else. */
export type SecretPlace = { from: 'variable'; name: string } | { from: 'file'; path: string };

/** An instant query; `$compute`, `$project` and `$branch` in it are replaced by ids. */
export interface PrometheusSource extends SourceBase {
  from: 'prometheus';
  url: string;
  query: string;
  /** The place of the bearer token, if one is needed. */
  token?: SecretPlace;
}

/** Each compute's own server is asked; `$host` in the connection string is replaced by the control API's host. */
export interface PostgresSource extends SourceBase {
  from: 'postgres';
  dsn: SecretPlace | { from: 'text'; text: string };
}

export type ConnectionSource = PrometheusSource | PostgresSource;

/** The default interval of counts, in milliseconds. */
export const DEFAULT_SOURCE_EVERY_MS = 60_000;
