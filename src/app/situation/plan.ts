import { createHash } from 'node:crypto';
import type { Result } from '../../common/result.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import { asksForConnections, connectionNeeds, withValidity } from '../../domain/connections/connection-samples.ts';
import { type ConnectionHistory, type ConnectionSample, STALE_AFTER_MS } from '../../domain/connections/connections.ts';
import { type FleetPlan, type FleetSituation, planFleet } from '../../domain/evaluate/plan-fleet.ts';
import { limitsBesideLists, withWavesBetween } from '../../domain/evaluate/ready-waves.ts';
import { type CompiledPolicies, compilePolicies, withBudgetSteps } from '../../domain/policy/compiled-policies.ts';
import type { ConnectionNeed } from '../../domain/policy/directive.ts';
import type { ManualChanges, PartialDisruption } from '../../domain/policy/disruption.ts';
import { DEFAULT_SOURCE_EVERY_MS, type PolicySet } from '../../domain/policy/policy.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import type { FleetFacts, Project } from '../../ports/control-api.ts';
import type { ConnectionSample as StoredSample } from '../../ports/store.ts';
import { type FleetReading, type OnProgress, refusedNotes } from '../fleet/read-fleet.ts';
import { spansOf } from '../usage/budget-store.ts';
import { type FleetSource, readSituation, type StoredSituation } from './read-situation.ts';
import type { StoredSource } from './stored-source.ts';

/** So far ahead the next boundary of a compute names its wave. */
const WAVES_AHEAD_MS = 24 * 60 * 60_000;

/** The rules of a plan, besides its policies. */
export interface PlanRules {
  disruption: PartialDisruption;
  manualChanges: ManualChanges | undefined;
  limits: RateLimits;
  accounts: readonly string[];
  /** The connections that a size accepts in an account; undefined for an unknown account. */
  profileOf(account: string): ConnectionProfile | undefined;
}

export interface PlanWanted {
  policies: PolicySet;
  /** The instant to plan for, milliseconds since the epoch; now if absent. */
  atMs?: number | undefined;
  mode: 'enforce' | 'observe';
  /** Plans for the computes of this project alone, by its id or name. What holds for the whole fleet, such as at_once, is left out. */
  project?: string | undefined;
  /** Reads branches even where no policy selects by them. */
  readBranches?: boolean;
  /** Called with how far the reading of the fleet has come. */
  onProgress?: OnProgress | undefined;
}

export interface Planning {
  plan: FleetPlan;
  policies: CompiledPolicies;
  /** The project that was planned for alone. */
  project: string | undefined;
  /** From what it was made. */
  situation: FleetSituation;
  projects: readonly Project[];
  /** One line for each part of the fleet that could not be read: the plan leaves it out. */
  missing: string[];
  /** One line for each assumption that the reader must know. */
  notes: string[];
}

/** Reads the fleet, and what is stored of it, and plans. Nothing is written. */
export async function planFor(
  wanted: PlanWanted,
  { source, stored, rules, now }: { source: FleetSource; stored: StoredSource; rules: PlanRules; now: () => number },
): Promise<Result<Planning>> {
  const { project } = wanted;
  const policies = compilePolicies(wanted.policies);
  const read = await readSituation(source, stored, {
    readBranches: policies.selectsByBranch || wanted.readBranches === true,
    project,
    countsConnections: asksForConnections(wanted.policies),
    nowMs: wanted.atMs ?? now(),
    onProgress: wanted.onProgress,
  });
  if (!read.ok) return read;
  const { fleet, facts, missing } = read.value;
  const situation = withWaves(
    situationOf(wanted, {
      policies: withBudgetSteps(policies, spansOf(facts.budgets)),
      source,
      rules,
      read: read.value,
      readAtMs: now(),
    }),
    { limits: rules.limits, fixed: facts.readyWaves, isWhole: project === undefined },
  );
  const staged = facts.staged.map((message) => `staged: ${message}`);
  const notes = [...stored.notes, ...staged, ...branchNotes(fleet)];
  const { projects } = fleet;
  return { ok: true, value: { plan: planFleet(situation), project, policies, situation, projects, missing, notes } };
}

/** With the waves that are fixed, and where the whole fleet is known also those of the next day. */
function withWaves(
  situation: FleetSituation,
  { limits, fixed, isWhole }: { limits: RateLimits; fixed: readonly ReadyWaves[]; isWhole: boolean },
): FleetSituation {
  const { policies, computes, records, baselines, holds, nowMs } = situation;
  const herd = computes.map((compute) => {
    const { baseline = baselines?.get(compute.computeId), trials } = records.get(compute.computeId) ?? {};
    return { compute, baseline, trials, holds };
  });
  const input = { policies, herd, fixed, limitsOf: limitsBesideLists(limits, computes) };
  return {
    ...situation,
    policies: withWavesBetween(input, { fromMs: nowMs, toMs: nowMs + (isWhole ? WAVES_AHEAD_MS : 0) }),
  };
}

function situationOf(
  { mode, atMs }: PlanWanted,
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
  const counted = isLive
    ? connectionsOfStore(facts.samples, policies.set)
    : connectionsOfFile(source.facts, policies.set, nowMs);
  // What is counted now says nothing about another instant.
  const usesConnections = !isLive || Math.abs(nowMs - readAtMs) <= STALE_AFTER_MS;
  return {
    policies,
    mode,
    nowMs,
    // A file without an instant is taken as it stands at the one that is planned for: the same file gives the same plan on any day.
    discoveredAtMs: isLive ? readAtMs : takenAtMs,
    computes: fleet.computes,
    records: facts.records,
    holds: facts.holds,
    freezes: facts.freezes,
    baselines: new Map(
      [...source.facts].flatMap(([computeId, { baseline }]) => (baseline ? [[computeId, baseline] as const] : [])),
    ),
    ...(usesConnections && { connections: counted }),
    profiles: profilesOf(rules, fleet),
    disruption: rules.disruption,
    manualChanges: rules.manualChanges,
    digest: (text) => createHash('sha256').update(text).digest('hex'),
  };
}

function profilesOf({ accounts, profileOf }: PlanRules, { projects }: FleetReading): FleetSituation['profiles'] {
  const names = new Set([...accounts, ...projects.map(({ account }) => account)]);
  return new Map(
    [...names].flatMap((name) => {
      const profile = profileOf(name);
      return profile ? [[name, profile] as const] : [];
    }),
  );
}

function branchNotes({ branchNamesRefused }: FleetReading): string[] {
  const [first] = branchNamesRefused;
  if (first === undefined) return [];
  const more = branchNamesRefused.length > 1 ? ` and ${branchNamesRefused.length - 1} more projects` : '';
  return refusedNotes([`${first}${more}`]);
}

/** Connections by compute id, as headroom is evaluated by them. */
type Connections = ReadonlyMap<string, ConnectionHistory>;

/**
 * The connections of a fleet file, taken as constant for as long as any policy looks back, and for each source: a file knows one moment
 * only, and a plan from it must not wait for more.
 */
function connectionsOfFile(facts: FleetFacts, set: PolicySet, nowMs: number): Connections {
  const needs = connectionNeeds(set.policies);
  const windowMs = Math.max(0, ...needs.map(({ scaleDownAfterMs }) => scaleDownAfterMs));
  const byCount = new Map<number, ConnectionHistory>();
  const known = new Map<string, ConnectionHistory>();
  for (const [computeId, { connections }] of facts) {
    if (connections === undefined) continue;
    const history = byCount.get(connections) ?? sameForAll(needs, steady(connections, nowMs, windowMs));
    byCount.set(connections, history);
    known.set(computeId, history);
  }
  return known;
}

/** Stored counts, for each source that the policies name. */
function connectionsOfStore(samples: ReadonlyMap<string, readonly StoredSample[]>, set: PolicySet): Connections {
  const needs = connectionNeeds(set.policies);
  const counted = [...samples].filter(([, all]) => all.length > 0);
  return new Map(
    counted.map(([computeId, all]) => {
      const of = (name: string) => {
        const { everyMs = DEFAULT_SOURCE_EVERY_MS } = set.sources.get(name) ?? {};
        return all.filter(({ source = name }) => source === name).map((sample) => withValidity(sample, everyMs));
      };
      // Also without headroom: a change that waits for a quiet moment asks for any count.
      return [
        computeId,
        new Map([['', all], ...needs.map(({ connections }) => [connections, of(connections)] as const)]),
      ];
    }),
  );
}

function sameForAll(needs: readonly ConnectionNeed[], samples: readonly ConnectionSample[]): ConnectionHistory {
  // Also without headroom: a change that waits for a quiet moment asks for any count.
  return new Map([['', samples], ...needs.map(({ connections }) => [connections, samples] as const)]);
}

/** So many samples that none is missing: a gap would count as not known. */
function steady(connections: number, nowMs: number, windowMs: number): ConnectionSample[] {
  const gaps = Math.ceil(windowMs / STALE_AFTER_MS);
  return Array.from({ length: gaps + 1 }, (_, index) => ({
    atMs: nowMs - Math.min(windowMs, (gaps - index) * STALE_AFTER_MS),
    connections,
  }));
}
