import { createHash, randomUUID } from 'node:crypto';
import type { DaemonContext } from '../app/context.ts';
import type { Daemon } from '../app/daemon.ts';
import { updateGauges } from '../app/fleet-metrics.ts';
import { mapConcurrently } from '../app/map-concurrently.ts';
import { createOperator } from '../app/operator/create-operator.ts';
import { computePage, fleetPage, knownCompute } from '../app/operator/fleet-page.ts';
import { findHold } from '../app/operator/holds.ts';
import { createWeekAhead } from '../app/operator/week-ahead.ts';
import { policyProblems, stagedSet } from '../app/policy-sets.ts';
import { requestReconcile } from '../app/triggers.ts';
import { ascending } from '../domain/compare.ts';
import { planHash } from '../domain/fleet-plan-hash.ts';
import { fleetPlanJson } from '../domain/fleet-plan-json.ts';
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
    lookAt: (projectIds: readonly string[]) =>
      mapConcurrently(projectIds, LOOKS_AT_A_TIME, (projectId) => requestReconcile(context, projectId)),
    daemon: {
      ...{ fleet, mode, readiness },
      policies: () => context.policies,
      revision: () => context.revision,
      staged: () => stagedSet(context),
      policyProblems: () => policyProblems(context),
      week: createWeekAhead({ policies: () => context.policies, clock }),
    },
  };
  return {
    ...createOperator(parts),
    readiness,
    async metricsText() {
      await updateGauges(context);
      return metricsText();
    },
    plan: async () => currentPlan(context),
    fleet: (query) => fleetPage(parts, query),
    findCompute: async (computeId) => knownCompute(parts, computeId),
    findHold: (id) => findHold(parts, id),
    compute: (computeId) => computePage(parts, computeId),
  };
}

/** What the daemon would do, as it last concluded: the same form, and the same hash for the same plan, as `ebb plan --json`. */
function currentPlan({ fleet, policies, clock }: DaemonContext): object {
  const computes = [...fleet.conclusions()].toSorted((a, b) => ascending(placeOf(a), placeOf(b)));
  const hash = createHash('sha256').update(planHash(policies.set.hash, computes)).digest('hex');
  return fleetPlanJson({ atMs: clock.now(), hash, computes });
}

function placeOf({ compute }: { compute: { projectId: string; computeId: string } }): string {
  return `${compute.projectId} ${compute.computeId}`;
}
