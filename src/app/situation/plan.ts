import type { Result } from '../../common/result.ts';
import type { AccountFacts } from '../../domain/compute/account-facts.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import { asksForConnections, connectionNeeds, withValidity } from '../../domain/connections/connection-samples.ts';
import { type ConnectionHistory, type ConnectionSample, STALE_AFTER_MS } from '../../domain/connections/connections.ts';
import { limitingBudgets } from '../../domain/decide/stages/budget.ts';
import { type FleetPlan, type FleetSituation, planFleet } from '../../domain/evaluate/plan-fleet.ts';
import { limitsForChanges, withWavesBetween } from '../../domain/evaluate/ready-waves.ts';
import { type CompiledPolicies, compilePolicies, withBudgetSteps } from '../../domain/policy/compiled-policies.ts';
import type { ConnectionNeed } from '../../domain/policy/directive.ts';
import type { ManualChanges, PartialDisruption } from '../../domain/policy/disruption.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { DEFAULT_SOURCE_EVERY_MS, type PolicySet } from '../../domain/policy/policy.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { FleetFacts, Project } from '../../ports/control-api.ts';
import type { ConnectionSample as StoredSample } from '../../ports/store.ts';
import { refusedBranchNotes } from '../fleet/branches.ts';
import type { FleetReading, OnProgress } from '../fleet/read-fleet.ts';
import { spansOf } from '../usage/budget-store.ts';
import { type FleetSource, noteOf, readSituation, type StoredSituation } from './read-situation.ts';
import type { StagedPart } from './staged-parts.ts';
import type { StoredFacts, StoredSource } from './stored-source.ts';

/** Boundaries within this time get their waves in the plan. */
const WAVES_AHEAD_MS = DAY_MS;

/** The settings that a plan depends on besides the policies. */
export interface PlanRules {
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  limits: RateLimits;
  accounts: readonly string[];
  /** The connection limits of an account's compute sizes, and its measured facts; undefined for an unknown account. */
  accountOf(account: string): { profile: ConnectionProfile; verified: AccountFacts } | undefined;
}

export interface PlanOptions {
  policies: PolicySet;
  /** The instant to plan for, milliseconds since the epoch; now if absent. */
  atMs?: number | undefined;
  mode: 'enforce' | 'observe';
  /** Plans for this project alone, by its id or name. Limits of the whole fleet, such as at_once, are left out. */
  project?: string | undefined;
  /** Reads branches even if no policy selects by them. */
  readBranches?: boolean;
  onProgress?: OnProgress | undefined;
}

export interface UnreadProject extends Pick<Project, 'projectId' | 'name'> {
  problem: string;
}

export interface PlanResult {
  plan: FleetPlan;
  policies: CompiledPolicies;
  /** The only project in the plan, if one was asked for. */
  project: string | undefined;
  situation: FleetSituation;
  projects: readonly Project[];
  /** When the snapshot was taken, if it says so. */
  takenAtMs?: number | undefined;
  /** True if the fleet was read from the store of daemons, not from the control API. */
  isStored: boolean;
  /** One line for each part of the fleet that could not be read: the plan leaves it out. */
  missing: string[];
  /** The listed projects whose computes could not be read, and why. */
  unread: readonly UnreadProject[];
  /** The modes of the daemons that are known to run; empty if none is known. */
  modes: StoredFacts['modes'];
  /** The parts of the policy set that wait for approval; empty for a plan of another instant. */
  staged: readonly StagedPart[];
  /** The assumptions that the user must know, one line each. */
  notes: string[];
}

/** Reads the fleet and the stored facts about it, and plans. Writes nothing. */
export async function planFor(
  options: PlanOptions,
  { source, stored, rules, now }: { source: FleetSource; stored: StoredSource; rules: PlanRules; now: () => number },
): Promise<Result<PlanResult>> {
  const { project } = options;
  const policies = compilePolicies(options.policies);
  const read = await readSituation(source, stored, {
    readBranches: policies.selectsByBranch || options.readBranches === true,
    project,
    countsConnections: asksForConnections(options.policies, rules.disruption),
    readGuards: policiesOfKind(options.policies.policies, 'guard').length > 0,
    nowMs: options.atMs ?? now(),
    onProgress: options.onProgress,
  });
  if (!read.ok) return read;
  const { fleet, facts, missing } = read.value;
  const situation = withWaves(
    situationOf(options, {
      policies: withBudgetSteps(policies, spansOf(facts.budgets)),
      source,
      rules,
      read: read.value,
      readAtMs: now(),
    }),
    { limits: rules.limits, fixed: facts.readyWaves, isWhole: project === undefined },
  );
  const staged = facts.staged.map(({ message }) => `staged: ${message}`);
  const notes = [...noteOf(source), ...stored.notes, ...staged, ...refusedBranchNotes(fleet.branchNamesRefused)];
  const value = {
    plan: planFleet(situation),
    policies,
    project,
    situation,
    projects: fleet.projects,
    takenAtMs: source.takenAtMs,
    isStored: source.isStored === true,
    missing: [...missing, ...missingSteps([options.policies], facts)],
    unread: fleet.unread.flatMap(({ projectId, name }) => {
      const error = fleet.errors.find((one) => one.projectId === projectId);
      return error ? [{ projectId, name, problem: source.explain(error) }] : [];
    }),
    modes: facts.modes,
    staged: options.atMs === undefined ? facts.staged : [],
    notes,
  };
  return { ok: true, value };
}

/** Returns one line if the sets have budgets with limiting steps, and it is not known which of these steps limit now. */
export function missingSteps(
  sets: readonly PolicySet[],
  { budgetsUnknown }: Pick<StoredFacts, 'budgetsUnknown'>,
): string[] {
  const names = new Set(sets.flatMap(limitingBudgets).map(({ name }) => name));
  if (!budgetsUnknown || names.size === 0) return [];
  return [`steps of ${[...names].join(', ')}: daemons have not stored yet which of them limit`];
}

/** Adds the waves that the leader has fixed and, if the whole fleet is known, those of the next day. */
function withWaves(
  situation: FleetSituation,
  { limits, fixed, isWhole }: { limits: RateLimits; fixed: readonly ReadyWaves[]; isWhole: boolean },
): FleetSituation {
  const { policies, computes, records, baselines, holds, verified, nowMs } = situation;
  const subjects = computes.map((compute) => {
    const { baseline = baselines?.get(compute.computeId), ...facts } = decidingFacts(records.get(compute.computeId));
    return { compute, baseline, ...facts, holds };
  });
  const input = { policies, subjects, fixed, verified, limitsOf: limitsForChanges(limits, computes) };
  return {
    ...situation,
    policies: withWavesBetween(input, { fromMs: nowMs, toMs: nowMs + (isWhole ? WAVES_AHEAD_MS : 0) }),
  };
}

function situationOf(
  { mode, atMs }: PlanOptions,
  {
    policies,
    source,
    rules,
    read: { fleet, facts },
    readAtMs,
  }: { policies: CompiledPolicies; source: FleetSource; rules: PlanRules; read: StoredSituation; readAtMs: number },
): FleetSituation {
  const nowMs = atMs ?? readAtMs;
  const { isLive, takenAtMs = nowMs } = source;
  const connections = isLive
    ? storedConnections(facts.samples, policies.set)
    : fileConnections(source.facts, policies.set, nowMs);
  // Current counts and verdicts say nothing about another instant.
  const isNow = Math.abs(nowMs - readAtMs) <= STALE_AFTER_MS;
  return {
    policies,
    mode,
    nowMs,
    // A fleet file without an instant counts as taken at the planned instant, so that it gives the same plan on any day.
    discoveredAtMs: isLive ? readAtMs : takenAtMs,
    computes: fleet.computes,
    records: facts.records,
    holds: facts.holds,
    freezes: facts.freezes,
    baselines: new Map(
      [...source.facts].flatMap(([computeId, { baseline }]) => (baseline ? [[computeId, baseline] as const] : [])),
    ),
    ...((!isLive || isNow) && { connections }),
    ...(isNow && { guardStates: facts.guards }),
    ...platformOf(rules, fleet),
    disruption: rules.disruption,
    manualChanges: rules.manualChanges,
  };
}

function platformOf(
  { accounts, accountOf }: PlanRules,
  { projects }: FleetReading,
): Required<Pick<FleetSituation, 'profiles' | 'verified'>> {
  const names = new Set([...accounts, ...projects.map(({ account }) => account)]);
  const platforms = [...names].flatMap((name) => {
    const platform = accountOf(name);
    return platform ? [[name, platform] as const] : [];
  });
  return {
    profiles: new Map(platforms.map(([name, { profile }]) => [name, profile])),
    verified: new Map(platforms.map(([name, { verified }]) => [name, verified])),
  };
}

/** Connection counts for headroom, by compute id. */
type Connections = ReadonlyMap<string, ConnectionHistory>;

/**
 * Returns the connections of a fleet file. Its one count is taken as constant for as long as any policy looks back, and as the count of every
 * source, so that the plan doesn't wait for more counts.
 */
function fileConnections(facts: FleetFacts, set: PolicySet, nowMs: number): Connections {
  const needs = connectionNeeds(set.policies);
  const windowMs = Math.max(0, ...needs.map(({ scaleDownAfterMs }) => scaleDownAfterMs));
  const byCount = new Map<number, ConnectionHistory>();
  const histories = new Map<string, ConnectionHistory>();
  for (const [computeId, { connections }] of facts) {
    if (connections === undefined) continue;
    const history = byCount.get(connections) ?? sameForAllSources(needs, constantSamples(connections, nowMs, windowMs));
    byCount.set(connections, history);
    histories.set(computeId, history);
  }
  return histories;
}

/** The stored counts, for each source that the policies name. */
function storedConnections(samples: ReadonlyMap<string, readonly StoredSample[]>, set: PolicySet): Connections {
  const needs = connectionNeeds(set.policies);
  const counted = [...samples].filter(([, all]) => all.length > 0);
  return new Map(
    counted.map(([computeId, all]) => {
      const samplesOf = (name: string) => {
        const { everyMs = DEFAULT_SOURCE_EVERY_MS } = set.sources.get(name) ?? {};
        return all.filter(({ source = name }) => source === name).map((sample) => withValidity(sample, everyMs));
      };
      // The source '' has all counts: a change that waits for a quiet moment takes those of any source.
      return [
        computeId,
        new Map([['', all], ...needs.map(({ connections }) => [connections, samplesOf(connections)] as const)]),
      ];
    }),
  );
}

function sameForAllSources(needs: readonly ConnectionNeed[], samples: readonly ConnectionSample[]): ConnectionHistory {
  // Here, too, '' stands for any source: see storedConnections.
  return new Map([['', samples], ...needs.map(({ connections }) => [connections, samples] as const)]);
}

/** Samples of a constant count without gaps, since a gap would make the count unknown. */
function constantSamples(connections: number, nowMs: number, windowMs: number): ConnectionSample[] {
  const intervals = Math.ceil(windowMs / STALE_AFTER_MS);
  return Array.from({ length: intervals + 1 }, (_, index) => ({
    atMs: nowMs - Math.min(windowMs, (intervals - index) * STALE_AFTER_MS),
    connections,
  }));
}
