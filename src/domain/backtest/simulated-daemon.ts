import { type Compute, type Size, settingsOf } from '../compute/compute.ts';
import type { ConnectionHistory } from '../connections/connections.ts';
import { searchBoundary } from '../decide/boundaries.ts';
import { evaluateNow, HEALTHY_GUARDS, type Situation } from '../evaluate/evaluate.ts';
import { withWanted } from '../evaluate/wanted-since.ts';
import { withAgreed } from '../plan/manual-changes.ts';
import type { Action } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ComputeRecord } from '../records/compute-record.ts';
import { firstRecord } from '../records/compute-record.ts';
import type { Recording } from './recording.ts';

/** A change of the size, or a restart, that the simulated daemon made. */
export interface ReplayedChange {
  /** Milliseconds since the epoch. */
  atMs: number;
  before: Size;
  after: Size;
  raises: boolean;
  /** True if it restarted the compute. */
  disconnects: boolean;
  /** The number of clients that the change disconnected. */
  dropped: number;
  policy: string;
}

export interface ReplayRules extends Pick<Situation, 'disruption' | 'manualChanges'> {
  policies: CompiledPolicies;
}

export interface SimulatedDaemon {
  readonly changes: readonly ReplayedChange[];
  /** Applies due actions to the compute; a restart disconnects `connectedClients`. Returns the latest instant for the next reconcile. */
  reconcile(nowMs: number, connections: ConnectionHistory, connectedClients: number): number;
}

/** Simulates a daemon in enforce mode that has long managed the compute. Its changes succeed at once and modify `compute` in place. */
export function simulateDaemon(
  { baseline, profile }: Recording,
  { policies, ...settings }: ReplayRules,
  compute: Compute,
): SimulatedDaemon {
  const changes: ReplayedChange[] = [];
  let record: ComputeRecord = {
    ...firstRecord(compute, 0),
    ...{ baseline, enforcedSinceMs: 0, lastApplied: settingsOf(compute) },
  };

  // Boundaries do not depend on connections, so a new one is searched only after the last has passed or the settings have changed.
  let boundaryMs = Number.NEGATIVE_INFINITY;

  function applyAction({ fields, disconnects, raises, policy }: Action, nowMs: number, connectedClients: number): void {
    const before = sizeOf(compute);
    Object.assign(compute, fields, disconnects && { startedAtMs: nowMs });
    boundaryMs = nowMs;
    record = {
      ...record,
      lastApplied: { ...record.lastApplied, ...fields },
      ...(disconnects && { lastDisruption: { atMs: nowMs, lowered: !raises, policy } }),
    };
    if (fields.maxCu === undefined && !disconnects) return;
    const dropped = disconnects ? connectedClients : 0;
    changes.push({ atMs: nowMs, before, after: sizeOf(compute), raises, disconnects, dropped, policy });
  }

  return {
    changes,
    reconcile(nowMs, connections, connectedClients) {
      const situation = { policies, compute, record, nowMs, connections, profile };
      const { decision, plan } = evaluateNow({
        ...situation,
        ...settings,
        ...HEALTHY_GUARDS,
        mode: 'enforce',
        projectBusy: false,
      });
      record = withAgreed(record, compute, decision);
      record = withWanted({ policies, compute, baseline: record.baseline, decision, record });
      if (plan.verdict === 'act') for (const action of plan.actions) applyAction(action, nowMs, connectedClients);
      if (nowMs >= boundaryMs) {
        const search = searchBoundary({ policies, compute, baseline }, nowMs);
        boundaryMs = search.boundaryMs ?? search.searchedUntilMs ?? Number.POSITIVE_INFINITY;
      }
      return plan.untilMs !== undefined && plan.untilMs > nowMs ? Math.min(plan.untilMs, boundaryMs) : boundaryMs;
    },
  };
}

function sizeOf({ minCu, maxCu }: Compute): Size {
  return { minCu, maxCu };
}
