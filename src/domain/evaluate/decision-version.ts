import type { VerifiedFacts } from '../compute/account-facts.ts';
import { COMPUTE_SIZES_CU } from '../compute/compute-units.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import { type ManualChanges, type PartialDisruption, resolveDisruption } from '../policy/disruption.ts';
import { canonical, digest } from '../policy/policy-set.ts';

/**
 * The version of the decision engine. Raise it when the same policies and settings lead to different decisions, that is, when the
 * results pinned in test/pinned change. decision-version.test.ts there keeps their hash for each released version.
 */
export const DECISION_VERSION = 1;

/** The settings that affect decisions. The scopes of teams are part of their policies. */
export interface DecisionSettings {
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  /** Connection profiles by account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
  verified: VerifiedFacts;
}

/** Daemons with the same hash decide alike. Explicit defaults and the order of keys make no difference. */
export function decisionHash(
  setHash: string,
  { disruption, manualChanges = { kind: 'respect' }, profiles, verified }: DecisionSettings,
  version: number = DECISION_VERSION,
): string {
  const profileEntries = [...profiles].map(([account, profile]) => [account, describeProfile(profile)] as const);
  const restarting = [...verified].flatMap(([account, facts]) => (facts.timeout_change === 'restarts' ? account : []));
  const settings = {
    disruption: resolveDisruption(disruption),
    manualChanges,
    profiles: Object.fromEntries(profileEntries),
    ...(restarting.length > 0 && { timeoutChangeRestarts: restarting.toSorted() }),
  };
  return digest(canonical({ version, setHash, settings }));
}

/** A profile contains a function, so it is described by its name and its value for each fixed size. */
function describeProfile({ name, reserved, maxConnections }: ConnectionProfile): object {
  const bySize = Object.fromEntries(COMPUTE_SIZES_CU.map((cu) => [cu, maxConnections({ minCu: cu, maxCu: cu })]));
  return { name, reserved, bySize };
}
