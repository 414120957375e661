import type { Compute } from '../../domain/compute/compute.ts';
import { CONNECTION_PROFILES, type ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { CurrentRules } from '../rules.ts';

export interface MismatchDeps {
  rules: CurrentRules;
  telemetry: Telemetry;
}

/** Says it once for each compute and size when a server has another max_connections than the account's profile says. */
export function noteMismatch(
  { rules, telemetry: { log } }: MismatchDeps,
  logged: Set<string>,
  compute: Compute,
  reported: number,
): void {
  const profile = rules.current.profiles.get(compute.account) ?? CONNECTION_PROFILES.specification;
  const expected = profile.maxConnections(compute);
  const key = `${compute.computeId} ${compute.minCu} ${compute.maxCu} ${reported}`;
  // While a change is under way the server is still as it was.
  if (expected === reported || compute.pendingState !== undefined || logged.has(key)) return;
  logged.add(key);
  const others: ConnectionProfile[] = Object.values(CONNECTION_PROFILES);
  const fitting = others.find((other) => other.maxConnections(compute) === reported);
  const advice = fitting === undefined ? 'give the table of its sizes as profile' : `the profile ${fitting.name} fits`;
  log.warn(
    { event: 'ebb.profile_mismatch', compute: compute.computeId, reported, expected, profile: profile.name },
    `${compute.computeId} has max_connections ${reported}, profile ${profile.name} says ${expected}: ${advice}`,
  );
}
