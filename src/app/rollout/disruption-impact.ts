import pLimit from 'p-limit';
import type { Compute } from '../../domain/compute/compute.ts';
import { evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { changesSizeAtFirstFlip } from '../../domain/evaluate/trials.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { firstRecord } from '../../domain/records/compute-record.ts';
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
}

export interface MeasureImpactDeps extends ReadProjectDeps, EvaluateDeps {
  store: Store;
  overrides: Overrides;
}

/** For up to this many computes no approval is needed. */
const FEW = 5;

/** Up to this share neither. */
const SHARE = 0.3;

const CONCURRENT_READS = 8;

/** Projects evaluated before other work gets its turn. */
const PROJECTS_A_TURN = 50;

/** True if so much must not happen without a person's word. */
export function isTooMuch({ disconnected, computes }: DisruptionImpact): boolean {
  return disconnected > FEW && disconnected > SHARE * computes;
}

/**
 * Counts the changes that rules would make now, on the whole fleet: projects that are not cached are read. Undefined if the fleet can't be
 * listed. Holds, freezes and manual changes count as usual; recent discovery or a recent restart does not: it passes by itself. The first
 * flip of a trial that has not begun counts as if it were now. `isCounted` selects the computes.
 */
export async function measureImpact(
  deps: MeasureImpactDeps,
  rules: Rules,
  signal: AbortSignal,
  isCounted: (compute: Compute) => boolean = () => true,
): Promise<DisruptionImpact | undefined> {
  const asIf: MeasureImpactDeps = { ...deps, rules: { current: compileRules(rules, deps.rules.current) } };
  if (!(await readMissing(asIf, signal))) return undefined;
  await deps.overrides.refresh(deps.store, deps.clock.now());
  const impact = { disconnected: 0, computes: 0 };
  let turn = 0;
  for (const cachedProject of [...deps.fleet.cachedProjects()]) {
    if (signal.aborted) return undefined;
    turn += 1;
    if (turn % PROJECTS_A_TURN === 0) await deps.clock.nextTurn();
    const records = await recordsOf(deps, cachedProject);
    for (const compute of cachedProject.computes.filter(isCounted)) {
      impact.computes += 1;
      if (wouldDisconnect(asIf, compute, records.get(compute.computeId))) impact.disconnected += 1;
    }
  }
  return impact;
}

async function readMissing(deps: MeasureImpactDeps, signal: AbortSignal): Promise<boolean> {
  const { fleet } = deps;
  const { projects, failures } = await readProjectList(deps, { signal });
  if (signal.aborted || (projects.length === 0 && failures.size > 0)) return false;
  const missing = projects.filter(({ projectId }) => !fleet.cachedProject(projectId) || lacksBranches(deps, projectId));
  await pLimit(CONCURRENT_READS).map(missing, async (project) => {
    if (signal.aborted) return;
    fleet.list(project);
    await readProject(deps, project, { signal });
  });
  return !signal.aborted;
}

/** True if branches count, and a project was read when they did not. */
export function lacksBranches({ rules, fleet }: { rules: CurrentRules; fleet: Fleet }, projectId: string): boolean {
  return needsBranches(rules) && !fleet.branches.has(projectId);
}

/** Connections are not read for sleeping computes. */
async function recordsOf(
  { fleet, store }: MeasureImpactDeps,
  { project, computes }: CachedProject,
): Promise<ReadonlyMap<string, ComputeRecord>> {
  if (computes.every(isAsleep)) return new Map();
  const known = new Map(fleet.evaluatedOf(project.projectId).map(({ compute, record }) => [compute.computeId, record]));
  return computes.every(({ computeId }) => known.has(computeId)) ? known : store.records(project.projectId);
}

function wouldDisconnect(deps: EvaluateDeps, compute: Compute, stored: ComputeRecord | undefined): boolean {
  if (isAsleep(compute)) return false;
  const record = atRest(stored ?? firstRecord(compute, deps.clock.now()), compute);
  const situation = situationOf(deps, { compute, record, projectBusy: false });
  const { policies, nowMs, holds } = situation;
  if (changesSizeAtFirstFlip({ policies, compute, baseline: record.baseline, trials: record.trials, holds }, nowMs))
    return true;
  const { plan } = evaluateNow(situation);
  return plan.verdict === 'act' && plan.actions.some(({ disconnects }) => disconnects);
}

/** The record after its temporary states have passed. */
function atRest(record: ComputeRecord, { minCu, maxCu }: Compute): ComputeRecord {
  const { intent: _asked, failures: _failed, lastDisruption: _disturbed, ...rest } = record;
  return { ...rest, openOperations: [], lastApplied: { minCu, maxCu, ...record.lastApplied } };
}

function isAsleep({ state }: Compute): boolean {
  return state === 'idle';
}
