import { createHash, randomUUID } from 'node:crypto';
import type { DaemonContext } from '../app/context.ts';
import type { Daemon } from '../app/daemon.ts';
import { narrowKeysOf } from '../app/fleet/narrow-keys.ts';
import { mapConcurrently } from '../app/map-concurrently.ts';
import { createOperator } from '../app/operator/create-operator.ts';
import { updateGauges } from '../app/operator/fleet-metrics.ts';
import { computePage, fleetPage, knownCompute } from '../app/operator/fleet-page.ts';
import { findHold } from '../app/operator/holds.ts';
import { rememberReads } from '../app/operator/remembered-reads.ts';
import { createWeekAhead } from '../app/operator/week-ahead.ts';
import { policyProblems, stagedSet } from '../app/rollout/write-permission.ts';
import { requestReconcile } from '../app/triggers.ts';
import { ascending } from '../domain/compare.ts';
import { fleetPlanJson } from '../domain/evaluate/fleet-plan-json.ts';
import { planHash } from '../domain/plan/fleet-plan-hash.ts';
import type { DaemonOperator } from '../ports/operator.ts';

/** Looks that are asked for at a time. */
const LOOKS_AT_A_TIME = 32;

export interface DaemonOperatorOptions {
  context: DaemonContext;
  metricsText: DaemonOperator['metricsText'];
  /** Undefined while it starts. */
  daemon(): Daemon | undefined;
}

/** What people may ask and tell a running daemon. */
export function daemonOperator({ context, metricsText, daemon }: DaemonOperatorOptions): DaemonOperator {
  const { store, fleet, mode, clock, telemetry } = context;
  const readiness = async () => {
    const starting = { ready: false, checks: [{ name: 'start', ok: false, message: 'starting' }] };
    return (await daemon()?.readiness()) ?? starting;
  };
  const parts = {
    store,
    log: telemetry.log,
    holder: randomUUID(),
    now: async () => clock.now(),
    reconcileLocked: (projectIds: readonly string[]) =>
      mapConcurrently(projectIds, LOOKS_AT_A_TIME, (projectId) => requestReconcile(context, projectId)),
    daemon: {
      ...{ fleet, mode, readiness },
      policies: () => context.policies,
      revision: () => context.revision,
      staged: () => stagedSet(context),
      policyProblems: () => [...policyProblems(context), ...narrowKeysOf(context).map(({ message }) => message)],
      week: createWeekAhead({ policies: () => context.policies, clock }),
    },
  };
  const reads = rememberReads(context);
  const shown = { ...parts, store: reads.store };
  const { status, computes, decisions, holds, freezes } = createOperator(shown);
  return {
    ...createOperator(parts),
    ...{ status, computes, decisions, holds, freezes },
    staleness: reads.staleness,
    readiness,
    async metricsText() {
      await updateGauges(context);
      return metricsText();
    },
    plan: async () => currentPlan(context),
    fleet: (query) => fleetPage(shown, query),
    findCompute: async (computeId) => knownCompute(parts, computeId),
    findHold: (id) => findHold(shown, id),
    compute: (computeId) => computePage(shown, computeId),
  };
}

/** What the daemon would do, as it last concluded: the same form, and the same hash for the same plan, as `ebb plan --json`. */
function currentPlan({ fleet, policies, clock }: DaemonContext): object {
  const computes = [...fleet.evaluatedComputes()].toSorted((a, b) => ascending(placeOf(a), placeOf(b)));
  const hash = createHash('sha256').update(planHash(policies.set.hash, computes)).digest('hex');
  return fleetPlanJson({ atMs: clock.now(), hash, computes });
}

function placeOf({ compute }: { compute: { projectId: string; computeId: string } }): string {
  return `${compute.projectId} ${compute.computeId}`;
}
