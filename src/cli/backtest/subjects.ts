import { readForForecast } from '../../compose/situation.ts';
import {
  type Compute,
  type ComputeSettings,
  DEFAULT_SUSPEND_TIMEOUT_SECONDS,
  type Size,
} from '../../domain/compute/compute.ts';
import { CONNECTION_PROFILES, type ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { EVERY_COMPUTE } from '../../domain/policy/selector.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { selectNamed } from '../filter.ts';
import type { CommonFlags } from '../flags.ts';

/** A compute as it is when its recording begins. */
interface Subject {
  compute: Compute;
  baseline: ComputeSettings;
  profile: ConnectionProfile;
}

export interface Subjects {
  policies: PolicySet;
  /** The policy under test, which is one of them. */
  policy: HeadroomPolicy;
  computes: readonly Subject[];
  /** The whole fleet, if known. On it depends in how many waves computes are raised. */
  fleet: readonly ForecastSubject[];
  notes: readonly string[];
}

export interface SubjectFlags extends CommonFlags {
  size?: Size;
  /** Seconds; −1 is never. */
  suspendAfter?: number;
}

/** The default of `--size`. */
const DEFAULT_SIZE: Size = { minCu: 0.25, maxCu: 0.25 };

/** The computes of a fleet file that the policy selects, with all policies of the set. */
export async function subjectsOfFleet(options: {
  settings: Settings;
  set: PolicySet;
  policy: HeadroomPolicy;
  fleetFile: string;
  nowMs: number;
}): Promise<Subjects> {
  const { settings, set, policy, fleetFile, nowMs } = options;
  const policies = compilePolicies(set);
  const { selectsByBranch } = policies;
  const read = await readForForecast({ settings, fleetFile, selectsByBranch, nowMs });
  const { subjects, missing, notes } = orFail(read);
  const computes = subjects
    .filter(({ compute }) => isSelected(policies, policy, compute))
    .map(({ compute, baseline = compute }) => ({ compute, baseline, profile: profileOf(settings, compute.account) }));
  if (computes.length === 0) throw new UserError(`--policy: ${policy.name} selects no compute of ${fleetFile}`);
  return {
    policies: set,
    policy,
    computes,
    fleet: subjects,
    notes: [...notes, ...missing.map((line) => `left out: ${line}`)],
  };
}

/** Computes of which only the ids are known. They begin at `--size`, and no other policy applies to them. */
export function subjectsOfIds(
  ids: readonly string[],
  { settings, set, policy, flags }: { settings: Settings; set: PolicySet; policy: HeadroomPolicy; flags: SubjectFlags },
): Subjects {
  const { size = DEFAULT_SIZE, suspendAfter: suspendTimeoutSeconds = DEFAULT_SUSPEND_TIMEOUT_SECONDS } = flags;
  const baseline = { ...size, suspendTimeoutSeconds };
  const onlyPolicy = { ...policy, select: EVERY_COMPUTE };
  const computes = ids.map((computeId) => ({
    compute: { ...UNKNOWN, ...baseline, computeId },
    baseline,
    profile: profileOf(settings, UNKNOWN.account),
  }));
  return { policies: { ...set, policies: [onlyPolicy] }, policy: onlyPolicy, computes, fleet: [], notes: [] };
}

const UNKNOWN: Omit<Compute, keyof ComputeSettings | 'computeId'> = {
  account: 'default',
  projectId: 'unknown',
  projectName: 'unknown',
  branchId: 'unknown',
  type: 'read_write',
  regionId: 'unknown',
  state: 'active',
  disabled: false,
  createdAtMs: 0,
};

/** The items whose id matches one of the globs; all without globs. */
export function named<T>(all: readonly T[], idOf: (one: T) => string, globs: readonly string[]): T[] {
  const complaint = (glob: string) => `no compute is called ${glob} in what was recorded; give an id or a glob`;
  return selectNamed(all, globs, (one) => [idOf(one)], complaint);
}

function isSelected(policies: CompiledPolicies, { name }: HeadroomPolicy, compute: Compute): boolean {
  return policies.selecting(compute).some((index) => policies.set.policies[index]?.name === name);
}

function profileOf({ accounts }: Settings, account: string): ConnectionProfile {
  return accountFor(accounts, account)?.profile ?? CONNECTION_PROFILES.specification;
}
