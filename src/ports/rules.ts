import type { AccountPlan, Prices } from '../domain/compute/cost.ts';
import type { ConnectionProfile } from '../domain/connections/connection-profile.ts';
import type { NotifyRules } from '../domain/notifications/receivers.ts';
import type { ManualChanges, PartialDisruption } from '../domain/policy/disruption.ts';
import type { GlobRule, OwnerRule } from '../domain/policy/owners.ts';
import type { PolicySet } from '../domain/policy/policy.ts';
import type { TeamScope } from '../domain/policy/team-parts.ts';

/** Who owns usage, and what it costs. */
export interface CostRules {
  owners: readonly OwnerRule[];
  /** What a start is worth, in milliseconds awake. */
  coldStartWorthMs: readonly GlobRule<number>[];
  prices: Prices;
  /** By account, where the settings say it. */
  plans: ReadonlyMap<string, AccountPlan>;
}

/** What a daemon decides by, and may exchange while it runs: the policies, and what settings say where they say nothing. */
export interface Rules {
  policies: PolicySet;
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  /** Whose files may select what. */
  teams: readonly TeamScope[];
  /** How many connections a size accepts, by account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  costs: CostRules;
  /** Who is told what. */
  notify: NotifyRules;
  /** What the rules were made from, such as a commit. */
  revision: string | undefined;
}

/** Files that have changed since the last reading. */
export interface ChangedFiles {
  /** Written over, created or deleted: somebody may be in the middle of it. */
  inPlace: readonly string[];
  /** Replaced as a whole: by a rename over the file, or by a link that was swapped. */
  replaced: readonly string[];
}

/** What was read; `changes` is absent where nothing is known to have changed. */
export type RulesReading = { changes?: ChangedFiles } & (
  | {
      ok: true;
      rules: Rules;
      /** What is wrong with the files of teams, of which `rules` has no policies: each in one line that says where. */
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

/** Where rules come from. */
export interface RulesSource {
  /** True if what was read last may no longer be what is there. */
  changed(): Promise<boolean>;
  /** Reads everything again, as a whole: all of it is right, or there are problems. */
  read(): Promise<RulesReading>;
}
