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
  /** The worth of a start, in milliseconds awake. */
  coldStartWorthMs: readonly GlobRule<number>[];
  prices: Prices;
  /** By account, where the settings say it. */
  plans: ReadonlyMap<string, AccountPlan>;
}

/** The rules that a daemon decides by, and may replace while it runs: the policies, and the settings' defaults. */
export interface Rules {
  policies: PolicySet;
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  /** The scopes of teams. */
  teams: readonly TeamScope[];
  /** The connections that a size accepts, by account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  /** What `ebb verify` has measured. */
  verified: VerifiedFacts;
  costs: CostRules;
  /** Receivers of notifications. */
  notify: NotifyRules;
  /** The source of the rules, such as a commit. */
  revision: string | undefined;
}

/** Files that have changed since the last reading. */
export interface ChangedFiles {
  /** Overwritten, created or deleted: somebody may be in the middle of it. */
  inPlace: readonly string[];
  /** Replaced as a whole: by a rename over the file, or by a link that was swapped. */
  replaced: readonly string[];
}

/** A reading of rules; `changes` is absent where nothing is known to have changed. */
export type RulesReading = { changes?: ChangedFiles } & (
  | {
      ok: true;
      rules: Rules;
      /** Problems of teams' files, of which `rules` has no policies: each in one line that says where. */
      broken?: ReadonlyMap<string, readonly string[]>;
      warnings: readonly string[];
      /** Names of settings that have changed and count only after a restart. */
      needRestart: readonly string[];
    }
  | {
      ok: false;
      /** Each in one line that says where: `file:line:column: message`. */
      problems: readonly string[];
    }
);

/** Reads rules. */
export interface RulesSource {
  /** True if the files may have changed since the last reading. */
  changed(): Promise<boolean>;
  /** Reads everything again, as a whole: all of it is right, or there are problems. */
  read(): Promise<RulesReading>;
  /** How long ago each file was written in place, in real milliseconds; without files that came as a whole, by a link. */
  writtenAgoMs(): Promise<ReadonlyMap<string, number>>;
}
