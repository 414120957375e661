import type { FieldGroup } from '../desired.ts';
import type { Policy } from '../policy.ts';
import type { Statement } from '../statement.ts';

/** What a kind of policy must answer. One file in this folder for each kind. Instants are milliseconds since the epoch. */
export interface Rule<P extends Policy> {
  /** What the policy says at an instant, in any order. */
  statementsAt(policy: P, policyIndex: number, instantMs: number): Statement[];
  /** The groups of fields that it may give another value, at any instant. */
  mayChange(policy: P): readonly FieldGroup[];
  /** The next instant strictly after at which {@link statementsAt} may say something else; undefined if never. */
  nextChangeAfter(policy: P, instantMs: number): number | undefined;
  /** The latest instant at or before at which it may have begun to say what it says; −Infinity if it always did. */
  lastChangeUntil(policy: P, instantMs: number): number;
}
