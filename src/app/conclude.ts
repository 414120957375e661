import type { Compute } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import { hasOperationRunning } from '../domain/gates/operation-running.ts';
import { judge, type Situation } from '../domain/judge.ts';
import type { Plan } from '../domain/plan.ts';
import type { Context } from './context.ts';
import type { Conclusion } from './fleet.ts';
import { sayHeadroom } from './headroom-log.ts';

/** Decides and plans for every compute of a project, and says what is held back when that is news. */
export function concludeProject(
  context: Context,
  computes: readonly Compute[],
  records: ReadonlyMap<string, ComputeRecord>,
): Conclusion[] {
  const startedMs = context.clock.monotonicMs();
  const conclusions = concludeSilently(context, computes, records);
  const seconds = (context.clock.monotonicMs() - startedMs) / 1000;
  context.telemetry.metrics.observe('ebb_decision_duration_seconds', {}, seconds);
  for (const conclusion of conclusions) {
    sayIfHeldBack(context, conclusion);
    sayHeadroom(context, conclusion);
  }
  return conclusions;
}

/** What is concluded about, besides what the daemon knows. */
interface Subject {
  compute: Compute;
  record: ComputeRecord;
  projectBusy: boolean;
}

/** Decides and plans for every compute of a project of which there is a record, and tells nobody. */
export function concludeSilently(
  context: Context,
  computes: readonly Compute[],
  records: ReadonlyMap<string, ComputeRecord>,
): Conclusion[] {
  const busy = computes.filter((compute) => hasOperationRunning(compute, records.get(compute.computeId)));
  return computes.flatMap((compute) => {
    const record = records.get(compute.computeId);
    if (!record) return [];
    const projectBusy = busy.some(({ computeId }) => computeId !== compute.computeId);
    return [concludeCompute(context, { compute, record, projectBusy })];
  });
}

/** Decides and plans for one compute, as things stand. */
export function concludeCompute(context: Context, subject: Subject): Conclusion {
  const { compute, record } = subject;
  return { compute, record, ...judge(situationOf(context, subject)) };
}

/** All by which a compute is judged, as things stand. */
export function situationOf(context: Context, { compute, record, projectBusy }: Subject): Situation {
  const { policies, mode, overrides } = context;
  // Clocks step back; decisions don't: what was decided for a later instant stands until then.
  const nowMs = Math.max(context.clock.now(), record.lastDecidedAtMs);
  const profile = context.profiles.get(compute.account);
  return {
    ...{ policies, compute, record, mode, projectBusy, nowMs },
    holds: overrides.holds,
    freezes: overrides.freezes,
    connections: context.samples.historyOf(compute.computeId),
    ...(profile && { profile }),
    disruption: context.disruption,
    manualChanges: context.manualChanges,
    isAtOnceFull: ({ policy }) => context.slots.isFull(policy),
  };
}

function sayIfHeldBack({ fleet, notify }: Context, { compute, plan }: Conclusion): void {
  if (plan.heldBy.length === 0) return;
  const before = fleet.conclusion(compute.computeId)?.plan;
  if (!before || signature(before) !== signature(plan)) notify({ kind: 'held_back', compute, plan });
}

function signature({ actions, heldBy }: Plan): string {
  return JSON.stringify([actions, heldBy]);
}
