import pLimit from 'p-limit';
import type { Compute } from '../../domain/compute/compute.ts';
import {
  asksForQuiet,
  compactSamples,
  connectionNeeds,
  lookbackMs,
  MAX_SAMPLES,
  withValidity,
} from '../../domain/connections/connection-samples.ts';
import { type Evaluation, evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { gatesOf } from '../../domain/plan/plan.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import { type ConnectionSource, countsConnections, type Policy } from '../../domain/policy/policy.ts';
import type { ConnectionCounters, CountOutcome } from '../../ports/connections.ts';
import type { ConnectionSample, Store } from '../../ports/store.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import { type ReadProjectDeps, readProject } from '../fleet/cached-projects.ts';
import { type Fleet, FRESH_MS } from '../fleet/fleet.ts';
import { profileOf } from '../rules.ts';
import { requestReconcile, type TriggerDeps } from '../triggers.ts';
import type { Samples } from './samples.ts';

/** How far in the future a stored sample may be, in milliseconds: clocks differ. A later sample would stay the newest for too long. */
const MAX_AHEAD_MS = 2000;

const CONCURRENT_READS = 8;
const CONCURRENT_STORE_CALLS = 16;

export interface SampleSourceDeps extends EvaluateDeps, ReadProjectDeps, TriggerDeps {
  store: Store;
  samples: Samples;
}

/** A connection source that policies use, and the computes whose connections it counts. */
export interface CountedComputes {
  source: ConnectionSource;
  computes: Compute[];
  /** The longest lookback of the policies, in milliseconds. */
  windowMs: number;
}

/**
 * Returns the computes to count, by source. A headroom policy names its source. A policy that only waits for a quiet moment uses the source
 * of the policy set if there is exactly one.
 */
export function countedComputes({ clock, fleet, rules }: EvaluateDeps & { fleet: Fleet }): CountedComputes[] {
  const { policies: compiled, disruption } = rules.current;
  const { sources, policies } = compiled.set;
  const counted = [...sources.values()].filter(countsConnections).map((source): CountedComputes => {
    return { source, computes: [], windowMs: lookbackMs(source.name, policies) };
  });
  if (counted.length === 0) return [];
  const nowMs = clock.now();
  const onlySource = new Set(counted.length === 1 ? counted.map(({ source }) => source.name) : []);
  for (const compute of [...fleet.cachedProjects()].flatMap(({ computes }) => computes)) {
    const names = sourceNamesOf(policiesSelecting(compiled, compute, nowMs), onlySource, disruption);
    for (const { source, computes } of counted) if (names.has(source.name)) computes.push(compute);
  }
  return counted.filter(({ computes }) => computes.length > 0);
}

function sourceNamesOf(
  policies: readonly Policy[],
  onlySource: ReadonlySet<string>,
  settings: PartialDisruption,
): ReadonlySet<string> {
  const names = new Set(connectionNeeds(policies).map(({ connections }) => connections));
  return names.size === 0 && policies.some((policy) => asksForQuiet(policy, settings)) ? onlySource : names;
}

function policiesSelecting(policies: CompiledPolicies, compute: Compute, nowMs: number): Policy[] {
  return policies
    .selecting(compute)
    .filter((index) => policies.selects(index, compute, nowMs))
    .flatMap((index) => policies.set.policies[index] ?? []);
}

/** Runs one round of a source. The daemon that counts asks the source; the others only read the stored counts. Returns the source's answers. */
export async function sampleSource(
  deps: SampleSourceDeps,
  counted: CountedComputes,
  options: { counters: ConnectionCounters; isCounting: boolean; signal: AbortSignal },
): Promise<Map<string, CountOutcome>> {
  const { source } = counted;
  const awake = counted.computes.filter(({ state }) => state !== 'idle');
  const stored = new Map<string, readonly ConnectionSample[]>();
  await pLimit(CONCURRENT_STORE_CALLS).map(awake, async ({ computeId }) => {
    const samples = await deps.store.samples(computeId);
    const latestMs = deps.clock.now() + MAX_AHEAD_MS;
    const plausible = samples.filter(({ atMs }) => atMs <= latestMs);
    stored.set(computeId, plausible);
  });
  const computes = options.isCounting ? await freshComputes(deps, source.from, awake) : [];
  const requests = computes.map((compute) => ({
    compute,
    ...lastZeroCount(stored.get(compute.computeId) ?? [], source.name),
  }));
  const { counters, signal } = options;
  const outcomes = requests.length === 0 ? new Map() : await counters.of(source).count(requests, signal);
  const projects = new Set<string>();
  const fresh = new Map(computes.map((compute) => [compute.computeId, compute]));
  await pLimit(CONCURRENT_STORE_CALLS).map(awake, async (cached) => {
    const compute = fresh.get(cached.computeId) ?? cached;
    const earlier = stored.get(compute.computeId) ?? [];
    const added = sampleOf(deps, compute, outcomes.get(compute.computeId), earlier, source.name);
    const all = added ? [...earlier, added] : earlier;
    if (added) await storeSamples(deps, counted, compute, all);
    const ofSource = samplesOfSource(all, source.name).map((sample) => withValidity(sample, source.everyMs));
    deps.samples.put(compute.computeId, source.name, ofSource);
    if (changesDecision(deps, compute)) projects.add(compute.projectId);
  });
  for (const projectId of projects) await requestReconcile(deps, projectId);
  return outcomes;
}

/**
 * Returns the computes to ask. For Postgres they must be read shortly before, since a connection would wake a compute that has fallen asleep.
 * Computes that can't be read now are left out.
 */
async function freshComputes(deps: SampleSourceDeps, from: 'postgres' | 'prometheus', computes: readonly Compute[]) {
  if (from === 'prometheus') return [...computes];
  const { fleet } = deps;
  const stale = new Set(computes.map(({ projectId }) => projectId).filter((id) => fleet.ageMs(id) > FRESH_MS));
  await pLimit(CONCURRENT_READS).map([...stale], async (projectId) => {
    const project = fleet.listed(projectId);
    if (project) await readProject(deps, project, { deadlineMs: FRESH_MS });
  });
  const computeIds = new Set(computes.map(({ computeId }) => computeId));
  return [...new Set(computes.map(({ projectId }) => projectId))]
    .filter((projectId) => fleet.ageMs(projectId) <= FRESH_MS)
    .flatMap((projectId) => fleet.cachedProject(projectId)?.computes ?? [])
    .filter(({ computeId }) => computeIds.has(computeId));
}

function samplesOfSource(samples: readonly ConnectionSample[], source: string): ConnectionSample[] {
  return samples.filter((sample) => (sample.source ?? source) === source);
}

function lastZeroCount(samples: readonly ConnectionSample[], source: string): { zeroCountedAtMs?: number } {
  const last = samplesOfSource(samples, source).at(-1);
  if (last?.countedAtMs === undefined || last.connections > 0 || last.sinceMs !== undefined) return {};
  return { zeroCountedAtMs: last.countedAtMs };
}

function sampleOf(
  { clock, rules }: SampleSourceDeps,
  compute: Compute,
  outcome: CountOutcome | undefined,
  earlier: readonly ConnectionSample[],
  source: string,
): ConnectionSample | undefined {
  if (!outcome?.ok) return undefined;
  const profile = profileOf(rules, compute.account);
  const atMs = clock.now();
  if (outcome.value === 'full') {
    const reported = samplesOfSource(earlier, source).findLast(({ maxConnections }) => maxConnections !== undefined);
    return { atMs, source, connections: Math.max(reported?.maxConnections ?? 0, profile.maxConnections(compute)) };
  }
  return { ...outcome.value, atMs, source };
}

async function storeSamples(
  deps: SampleSourceDeps,
  { windowMs }: CountedComputes,
  { computeId }: Compute,
  samples: readonly ConnectionSample[],
): Promise<void> {
  const names = new Set(samples.map(({ source }) => source));
  const sources = [...deps.rules.current.policies.set.sources.values()].filter(({ name }) => names.has(name));
  const maxSamples = Math.max(4, Math.floor(MAX_SAMPLES / sources.length));
  const nowMs = deps.clock.now();
  const compacted = sources.flatMap(({ name, everyMs }) => {
    const ofSource = samples.filter(({ source }) => source === name).map((sample) => withValidity(sample, everyMs));
    return compactSamples(ofSource, { nowMs, windowMs, maxSamples });
  });
  await deps.store.putSamples(computeId, compacted);
}

/** Returns true if the new counts lead to another decision than that of the last evaluation. */
function changesDecision(deps: SampleSourceDeps, compute: Compute): boolean {
  const before = deps.fleet.latestEvaluation(compute.computeId);
  if (!before) return false;
  const after = evaluateNow(situationOf(deps, { compute, record: before.record, projectBusy: false }));
  const summary = ({ decision, plan }: Pick<Evaluation, 'decision' | 'plan'>) =>
    JSON.stringify([decision.desired, plan.actions, gatesOf(plan)]);
  return summary(before) !== summary(after);
}
