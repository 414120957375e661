/**
 * What a policy set is once its text has been read: complete, checked, without places.
 * `policy/` makes these from YAML; nothing here knows about text.
 */
import type { ConnectionSource } from './connection-source.ts';
import type { PolicyKind, PolicyOf } from './kinds/kinds.ts';

/** A policy of any kind of the registry. */
export type Policy = PolicyOf<PolicyKind>;

export interface PolicySet {
  /** In the order of the language: files in byte order of their paths, then as written. "Later" means in this order. */
  policies: readonly Policy[];
  /** Where counts of connections come from, by the name that headroom policies use. */
  sources: ReadonlyMap<string, ConnectionSource>;
  /** Identifies the meaning of the set: equal for equal policies, whatever the comments and blanks of their files. */
  hash: string;
}
