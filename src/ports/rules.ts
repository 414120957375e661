import type { VerifiedFacts } from '../domain/compute/account-facts.ts';
import type { AccountPlan, Prices } from '../domain/compute/cost.ts';
import type { ConnectionProfile } from '../domain/connections/connection-profile.ts';
import type { NotifyRules } from '../domain/notifications/notification.ts';
import type { ManualChanges, PartialDisruption } from '../domain/policy/disruption.ts';
import type { GlobRule, OwnerRule } from '../domain/policy/owners.ts';
import type { PolicySet } from '../domain/policy/policy.ts';
import type { TeamScope } from '../domain/policy/team-parts.ts';

/** Owners and prices of usage. */
export interface CostRules {
  owners: readonly OwnerRule[];
  /** The cost of a start, in milliseconds awake. */
  coldStartWorthMs: readonly GlobRule<number>[];
  prices: Prices;
  /** By account, where set. */
  plans: ReadonlyMap<string, AccountPlan>;
}

/** The policies and defaults that a daemon decides by, and can reload. */
export interface Rules {
  policies: PolicySet;
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  teams: readonly TeamScope[];
  /** By account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  /** Measured by `ebb verify`. */
  verified: VerifiedFacts;
  costs: CostRules;
  notify: NotifyRules;
  /** The source of the rules, such as a commit. */
  revision: string | undefined;
}

/** Files that have changed since the last reading. */
export interface ChangedFiles {
  /** Overwritten, created or deleted: the edit may be unfinished. */
  inPlace: readonly string[];
  /** Replaced atomically: by a rename over the file, or a swapped link. */
  replaced: readonly string[];
}

/** The result of a read; `changes` is absent where no change was noticed. */
export type RulesReading = { changes?: ChangedFiles } & (
  | {
      ok: true;
      rules: Rules;
      /** By team, problems of files whose policies are not in `rules`: one line each, with its place. */
      broken?: ReadonlyMap<string, readonly string[]>;
      warnings: readonly string[];
      /** Names of changed settings that need a restart. */
      needRestart: readonly string[];
    }
  | {
      ok: false;
      /** One line each: `file:line:column: message`. */
      problems: readonly string[];
    }
);

export interface RulesSource {
  /** True if the files may have changed since the last read. */
  changed(): Promise<boolean>;
  /** Reads everything again. */
  read(): Promise<RulesReading>;
  /** Real milliseconds since each file was written in place; without files behind links. */
  writtenAgoMs(): Promise<ReadonlyMap<string, number>>;
}
