import { COMPUTE_SIZES_CU } from '../compute/compute-units.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import { type ManualChanges, type PartialDisruption, resolveDisruption } from '../policy/disruption.ts';
import { canonical, digest } from '../policy/policy-set.ts';

/**
 * Version of the decision engine. It is raised only when the pinned corpus changes: the same policies and settings then lead to other
 * decisions. test/pinned/decision-version.test.ts keeps the hash of the corpus for each version that was released.
 */
export const DECISION_VERSION = 1;

/** The settings by which the engine decides, besides policies. The scopes of teams are part of their policies. */
export interface DecidingSettings {
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  /** By account. */
  profiles: ReadonlyMap<string, ConnectionProfile>;
}

/**
 * Identifies the basis of decisions: a policy set by its hash, the settings and the version of the engine. Daemons with the same hash
 * decide alike. An explicit default, and the order of keys, make no difference.
 */
export function decisionHash(
  setHash: string,
  { disruption, manualChanges = { kind: 'respect' }, profiles }: DecidingSettings,
  version: number = DECISION_VERSION,
): string {
  const limits = [...profiles].map(([account, profile]) => [account, describeProfile(profile)] as const);
  const settings = { disruption: resolveDisruption(disruption), manualChanges, profiles: Object.fromEntries(limits) };
  return digest(canonical({ version, setHash, settings }));
}

/** A profile is a function: it is identified by its name and its values for each fixed size. */
function describeProfile({ name, reserved, maxConnections }: ConnectionProfile): object {
  const bySize = Object.fromEntries(COMPUTE_SIZES_CU.map((cu) => [cu, maxConnections({ minCu: cu, maxCu: cu })]));
  return { name, reserved, bySize };
}
