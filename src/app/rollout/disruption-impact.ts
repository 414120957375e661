import pLimit from 'p-limit';
import { afterOperation, type Compute } from '../../domain/compute/compute.ts';
import { evaluateNow, laterSituation } from '../../domain/evaluate/evaluate.ts';
import { changesSizeAtFirstFlip } from '../../domain/evaluate/trials.ts';
import { type ComputeRecord, decidingFacts, firstRecord } from '../../domain/records/compute-record.ts';
import type { Project } from '../../ports/control-api.ts';
import type { Rules } from '../../ports/rules.ts';
import type { Store } from '../../ports/store.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import { type ReadProjectDeps, readProject, readProjectList } from '../fleet/cached-projects.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { needsBranches } from '../fleet/read-computes.ts';
import type { Overrides } from '../overrides.ts';
import { type CurrentRules, compileRules } from '../rules.ts';

/** The number of computes that rules would change at once. */
export interface DisruptionImpact {
  /** Computes that would be disconnected as soon as the rules become current. */
  disconnected: number;
  computes: number;
  /** The number of disconnected computes by policy, and some of their ids. */
  byPolicy?: Record<string, number>;
  examples?: string[];
}

const MAX_EXAMPLES = 3;

export interface MeasureImpactDeps extends ReadProjectDeps, EvaluateDeps {
  store: Store;
  overrides: Overrides;
}

/** Rules that disconnect up to this many computes need no approval. */
const MAX_UNAPPROVED_COMPUTES = 5;

/** Rules that disconnect up to this share of the computes need no approval. */
const MAX_UNAPPROVED_SHARE = 0.3;

const CONCURRENT_READS = 8;

/** How many projects are evaluated before other work gets its turn. */
const PROJECTS_PER_TURN = 50;

/** Returns true if rules with this impact need a person's approval. */
export function needsApproval({ disconnected, computes }: DisruptionImpact): boolean {
  return disconnected > MAX_UNAPPROVED_COMPUTES && disconnected > MAX_UNAPPROVED_SHARE * computes;
}

/**
 * Counts the computes that rules would disconnect now, in the whole fleet; projects that are not cached are read. Undefined if the fleet
 * can't be listed. Holds, freezes and manual changes are respected. Recent discovery, recent restarts and limits on restarts are ignored,
 * since they pass by themselves: a set that restarts computes may follow another that still does. The first flip of a future trial counts
 * as if it were now. `isCounted` selects the computes.
 */
export async function measureImpact(
  deps: MeasureImpactDeps,
  rules: Rules,
  signal: AbortSignal,
  isCounted: (compute: Compute) => boolean = () => true,
): Promise<DisruptionImpact | undefined> {
  const candidateDeps: MeasureImpactDeps = { ...deps, rules: { current: compileRules(rules, deps.rules.current) } };
  if (!(await readMissing(candidateDeps, signal))) return undefined;
  await deps.overrides.refresh(deps.store, deps.clock.now());
  const impact = { disconnected: 0, computes: 0, byPolicy: {} as Record<string, number>, examples: [] as string[] };
  let turn = 0;
  for (const cachedProject of [...deps.fleet.cachedProjects()]) {
    if (signal.aborted) return undefined;
    turn += 1;
    if (turn % PROJECTS_PER_TURN === 0) await deps.clock.nextTurn();
    const records = await recordsOf(deps, cachedProject);
    for (const compute of cachedProject.computes.filter(isCounted)) {
      impact.computes += 1;
      const policy = disconnectingPolicy(candidateDeps, compute, records.get(compute.computeId));
      if (policy === undefined) continue;
      impact.disconnected += 1;
      impact.byPolicy[policy] = (impact.byPolicy[policy] ?? 0) + 1;
      if (impact.examples.length < MAX_EXAMPLES) impact.examples.push(compute.computeId);
    }
  }
  return impact;
}

/**
 * Reads projects that are not cached, from the end of the list: after a start, the inventory reads them from its beginning, and neither
 * reads what the other has read. Returns false if the list of projects is unknown, or when aborted.
 */
async function readMissing(deps: MeasureImpactDeps, signal: AbortSignal): Promise<boolean> {
  const { fleet, store } = deps;
  const { projects, failures } = await readProjectList(deps, { signal });
  if (signal.aborted || (projects.length === 0 && failures.size > 0)) return false;
  const isMissing = ({ projectId }: Project) => !fleet.cachedProject(projectId) || lacksBranches(deps, projectId);
  await pLimit(CONCURRENT_READS).map(projects.filter(isMissing).toReversed(), async (project) => {
    if (signal.aborted || !isMissing(project)) return;
    await readProject(deps, project, { signal, records: await store.records(project.projectId) });
  });
  return !signal.aborted;
}

/** Returns true if policies select by branch, but the project was read without its branches. */
export function lacksBranches({ rules, fleet }: { rules: CurrentRules; fleet: Fleet }, projectId: string): boolean {
  return needsBranches(rules) && !fleet.branches.has(projectId);
}

/** Returns the records of a project; none if all computes sleep, since sleeping ones can't be disconnected. */
async function recordsOf(
  { fleet, store }: MeasureImpactDeps,
  { project, computes }: CachedProject,
): Promise<ReadonlyMap<string, ComputeRecord>> {
  if (computes.every(isAsleep)) return new Map();
  const known = new Map(
    fleet.ownEvaluations(project.projectId).map(({ compute, record }) => [compute.computeId, record]),
  );
  return computes.every(({ computeId }) => known.has(computeId)) ? known : store.records(project.projectId);
}

/** Returns the policy that disconnects the compute now, or `trial` for the first flip of one; undefined if none does. */
function disconnectingPolicy(deps: EvaluateDeps, read: Compute, stored: ComputeRecord | undefined): string | undefined {
  if (isAsleep(read)) return undefined;
  const compute = afterOperation(read);
  const record = withoutTemporaryStates(stored ?? firstRecord(compute, deps.clock.now()), compute);
  const situation = situationOf(deps, { compute, record, projectBusy: false });
  const { policies, nowMs, holds } = situation;
  if (changesSizeAtFirstFlip({ policies, compute, ...decidingFacts(record), holds }, nowMs)) return 'trial';
  const { plan } = evaluateNow(laterSituation(situation));
  return plan.verdict === 'act' ? plan.actions.find(({ disconnects }) => disconnects)?.policy : undefined;
}

/** The record without states that pass by themselves. A compute whose size ebb never set counts as managed for a long time. */
function withoutTemporaryStates(record: ComputeRecord, { minCu, maxCu }: Compute): ComputeRecord {
  const { intent: _asked, failures: _failed, lastDisruption: _disturbed, ...rest } = record;
  return { ...rest, openOperations: [], lastApplied: { minCu, maxCu, ...record.lastApplied } };
}

function isAsleep(compute: Compute): boolean {
  return afterOperation(compute).state === 'idle';
}
