import { createHash } from 'node:crypto';
import { mapInTurns } from '../../common/in-turns.ts';
import { fleetPlanJson, plannedComputeJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { hashedActions, textToHash } from '../../domain/evaluate/plan-fleet.ts';
import { ascending } from '../../domain/sorted.ts';
import type { Clock, NewId } from '../../ports/clock.ts';
import type { JobQueue } from '../../ports/job-queue.ts';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Store } from '../../ports/store.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import { currentNarrowKeys } from '../fleet/inventory.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import { policyProblems, type SetsDeps, stagedSets } from '../rollout/write-permission.ts';
import type { Outages } from '../telemetry/outages.ts';
import { requestReconciles, type TriggerDeps } from '../triggers.ts';
import { createRefusals } from './audit.ts';
import { createOperator } from './create-operator.ts';
import { apiLimitsDocument, factsDocument, herdDocuments, refusedProjects } from './documents.ts';
import { type GaugeDeps, updateGauges } from './fleet-metrics.ts';
import { computePage, fleetPage, knownCompute } from './fleet-page.ts';
import { findHold } from './holds.ts';
import type { DaemonView } from './parts.ts';
import { rememberReads } from './remembered-reads.ts';
import { teamsOf } from './teams-of.ts';
import { createWeekAhead } from './week-ahead.ts';

export interface DaemonOperatorDeps extends SetsDeps, GaugeDeps, TriggerDeps {
  clock: Clock;
  newId: NewId;
  mode: Mode;
  store: Store;
  outages: Pick<Outages, 'refused'>;
  storeClock: Pick<StoreClock, 'excessiveOffsetMs' | 'lastExcessiveOffsetMs'>;
  queue: JobQueue;
  readiness: DaemonOperator['readiness'];
  metricsText: DaemonOperator['metricsText'];
}

export function daemonOperator(deps: DaemonOperatorDeps): DaemonOperator {
  const { store, storeClock, fleet, mode, clock, newId, telemetry, rules, readiness, overrides } = deps;
  const parts = {
    store,
    log: telemetry.log,
    clock,
    newId,
    holder: newId(),
    // The store's time: by a clock that is ahead, active holds would seem to have expired, and a release would not end them.
    now: async () => clock.now() - ((await storeClock.excessiveOffsetMs()) ?? 0),
    requestReconciles: (projectIds: readonly string[]) => requestReconciles(deps, projectIds),
    daemon: {
      fleet,
      mode,
      readiness,
      policies: () => rules.current.policies,
      rules: () => rules.current,
      teams: () => rules.current.teams,
      owners: () => rules.current.costs.owners,
      costs: () => rules.current.costs,
      facts: () => factsDocument(rules),
      herds: () => herdDocuments(deps, clock.now()),
      apiLimits: () => apiLimitsDocument(deps),
      refusedProjects: () => refusedProjects(deps),
      revision: () => rules.current.revision,
      staged: () => stagedSets(deps),
      policyProblems: problemsShown(deps),
      week: createWeekAhead({ policies: () => rules.current.policies, clock }),
    },
  };
  const reads = rememberReads(deps);
  const displayParts = {
    ...parts,
    store: reads.store,
    now: async () => clock.now() - (storeClock.lastExcessiveOffsetMs() ?? 0),
  };
  const { status, computes, decisions, holds, freezes, costs } = createOperator(displayParts);
  const operator = createOperator(parts);
  // Called before a hold or freeze is ended. If the store has lost it, it would not be found, and would be written back a moment later.
  const writeBackLost = () => overrides.refresh(store, clock.now());
  return {
    ...operator,
    async release(request, caller) {
      await writeBackLost();
      return operator.release(request, caller);
    },
    async unfreeze(request, caller) {
      await writeBackLost();
      return operator.unfreeze(request, caller);
    },
    status,
    computes,
    decisions,
    holds,
    freezes,
    costs,
    staleness: reads.staleness,
    readiness,
    async metricsText() {
      await updateGauges(deps);
      return deps.metricsText();
    },
    teamsOf: (kind, target) => teamsOf(parts, kind, target),
    refused: createRefusals(parts),
    plan: () => currentPlan(deps),
    fleet: (query) => fleetPage(displayParts, query),
    findCompute: async (computeId) => knownCompute(parts, computeId),
    findHold: (id) => findHold(displayParts, id),
    compute: (computeId) => computePage(displayParts, computeId),
  };
}

function problemsShown(deps: DaemonOperatorDeps): DaemonView['policyProblems'] {
  return (isShown) => [...policyProblems(deps, isShown), ...currentNarrowKeys(deps).map(({ message }) => message)];
}

/** Returns the actions of the last evaluations, in the form of `ebb plan --json` and with the same hash for the same plan. */
async function currentPlan({ fleet, rules, clock }: DaemonOperatorDeps): Promise<object> {
  const atMs = clock.now();
  const placed = [...fleet.evaluatedComputes()].map((one) => ({
    one,
    place: `${one.compute.projectId} ${one.compute.computeId}`,
  }));
  const computes = placed.toSorted((a, b) => ascending(a.place, b.place)).map(({ one }) => one);
  const { hash: setHash } = rules.current.policies.set;
  const actions = await mapInTurns(computes, hashedActions, clock);
  const hash = createHash('sha256').update(textToHash(setHash, actions)).digest('hex');
  const plan = fleetPlanJson({ atMs, hash, computes: [] });
  return { ...plan, computes: await mapInTurns(computes, plannedComputeJson, clock) };
}
