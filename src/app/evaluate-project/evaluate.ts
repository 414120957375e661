import type { Compute } from '../../domain/compute/compute.ts';
import type { ReasonCode } from '../../domain/compute/reasons.ts';
import type { ConnectionHistory } from '../../domain/connections/connections.ts';
import { describeStep, type TraceStep } from '../../domain/decide/trace.ts';
import { type EvaluatedCompute, evaluate, type Situation } from '../../domain/evaluate/evaluate.ts';
import { isRestoreUpToDate } from '../../domain/overrides/restore.ts';
import { hasOperationRunning } from '../../domain/plan/gates/earlier-writes.ts';
import { withAgreed } from '../../domain/plan/manual-changes.ts';
import { gatesOf, type Plan } from '../../domain/plan/plan.ts';
import { notLoadedAmong } from '../../domain/policy/team-parts.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { withApplied } from '../../domain/records/lag.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ReportEvent } from '../../ports/compute-events.ts';
import type { Store, StoredOverrides } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { noteHeld } from '../fleet/held-span.ts';
import type { GuardVerdicts } from '../guards/verdicts.ts';
import type { CompiledRules, CurrentRules } from '../rules.ts';

export type Mode = 'enforce' | 'observe';

/** Dependencies of an evaluation, which uses the rules that are current when it begins. */
export interface EvaluateDeps {
  clock: Clock;
  mode: Mode;
  rules: CurrentRules;
  overrides: StoredOverrides;
  samples: { historyOf(computeId: string): ConnectionHistory };
  /** Absent: guards have not been asked. */
  guards?: Pick<GuardVerdicts, 'of'>;
  slots: { isAtOnceReached(policy: string): boolean; isAtMostReached(policy: string): boolean };
}

export interface EvaluateProjectDeps extends EvaluateDeps {
  fleet: Fleet;
  telemetry: Telemetry;
  reportEvent: ReportEvent;
}

/** Evaluates every compute of a project that has a record. Reports changes that are newly held back. */
export function evaluateProject(
  deps: EvaluateProjectDeps,
  computes: readonly Compute[],
  records: ReadonlyMap<string, ComputeRecord>,
): EvaluatedCompute[] {
  const startedMs = deps.clock.monotonicMs();
  const evaluatedComputes = evaluateQuietly(deps, computes, records);
  const seconds = (deps.clock.monotonicMs() - startedMs) / 1000;
  deps.telemetry.metrics.observe('ebb_decision_duration_seconds', {}, seconds);
  for (const evaluatedCompute of evaluatedComputes) {
    reportHeldBack(deps, evaluatedCompute);
    noteHeld(deps.fleet, evaluatedCompute);
    logHeadroom(deps, evaluatedCompute);
  }
  return evaluatedComputes;
}

interface Subject {
  compute: Compute;
  record: ComputeRecord;
  projectBusy: boolean;
}

/** Evaluates like {@link evaluateProject}, but reports nothing. */
function evaluateQuietly(
  deps: EvaluateDeps,
  computes: readonly Compute[],
  records: ReadonlyMap<string, ComputeRecord>,
): EvaluatedCompute[] {
  return subjectsOf(computes, records).map((subject) => evaluateCompute(deps, subject));
}

/** Returns the computes that have a record. `projectBusy`: an operation runs on another compute of the project. */
export function subjectsOf(computes: readonly Compute[], records: ReadonlyMap<string, ComputeRecord>): Subject[] {
  const busy = computes.filter((compute) => hasOperationRunning(compute, records.get(compute.computeId)));
  return computes.flatMap((compute) => {
    const record = records.get(compute.computeId);
    if (!record) return [];
    return [{ compute, record, projectBusy: busy.some(({ computeId }) => computeId !== compute.computeId) }];
  });
}

/** Decides and plans for one compute. */
export function evaluateCompute(deps: EvaluateDeps, subject: Subject): EvaluatedCompute {
  const { compute, record } = subject;
  return { compute, record, ...evaluate(situationOf(deps, subject)) };
}

/** The rules that gates need: connection profiles, verified facts of accounts, and when restarts wait and manual changes are respected. */
export type RulesForGates = Pick<CompiledRules, 'profiles' | 'verified' | 'disruption' | 'manualChanges'>;

/** Returns the rules by which the gates judge a compute. */
export function gateRules({ profiles, verified, disruption, manualChanges }: RulesForGates, { account }: Compute) {
  const profile = profiles.get(account);
  return { ...(profile && { profile }), verified: verified.get(account), disruption, manualChanges };
}

/** Returns what decides about a compute now: its state, and the present rules, holds, freezes, connections, guards and limits. */
export function situationOf(deps: EvaluateDeps, { compute, record, projectBusy }: Subject): Situation {
  const { mode, overrides } = deps;
  // A clock may step back, but decisions never go back in time.
  const nowMs = Math.max(deps.clock.now(), record.lastDecidedAtMs);
  return {
    policies: deps.rules.current.policies,
    compute,
    record,
    mode,
    projectBusy,
    nowMs,
    holds: overrides.holds,
    freezes: overrides.freezes,
    connections: deps.samples.historyOf(compute.computeId),
    ...gateRules(deps.rules.current, compute),
    verdictOf: (guard) => deps.guards?.of(guard, compute.computeId, nowMs),
    isAtOnceReached: ({ policy }) => deps.slots.isAtOnceReached(policy),
    isAtMostReached: ({ policy }) => deps.slots.isAtMostReached(policy),
  };
}

function reportHeldBack({ fleet, reportEvent }: EvaluateProjectDeps, { compute, plan }: EvaluatedCompute): void {
  if (plan.waiting.length === 0) return;
  const before = fleet.ownEvaluation(compute.computeId)?.plan;
  if (!before || planSignature(before) !== planSignature(plan)) reportEvent({ kind: 'held_back', compute, plan });
}

function planSignature(plan: Plan): string {
  return JSON.stringify([plan.actions, plan.held, gatesOf(plan)]);
}

/** Reason codes of the headroom steps that are logged. */
const LOGGED_REASONS: ReadonlySet<ReasonCode> = new Set([
  'headroom',
  'headroom_advised',
  'headroom_over_limit',
  'headroom_unmet',
  'stabilising',
  'connections_unknown',
]);

/** Logs the headroom steps of a compute when they differ from those of its last evaluation. */
function logHeadroom({ fleet, telemetry }: EvaluateProjectDeps, { compute, decision }: EvaluatedCompute): void {
  const before = loggedSteps(fleet.ownEvaluation(compute.computeId)?.decision.trace ?? []);
  const after = loggedSteps(decision.trace);
  if (headroomSignature(before) === headroomSignature(after)) return;
  const { projectId: project, computeId } = compute;
  const steps = after.map(({ code, policy, connections }) => ({ code, policy: policy?.name, ...connections }));
  const message = after.length === 0 ? 'has enough connections' : after.map((step) => describeStep(step)).join('; ');
  telemetry.log.info({ event: 'ebb.headroom', project, compute: computeId, steps }, `${computeId}: ${message}`);
}

function loggedSteps(trace: readonly TraceStep[]): TraceStep[] {
  return trace.filter(({ code }) => LOGGED_REASONS.has(code));
}

/** Returns a text to compare headroom steps by. It leaves out the counts, which change all the time. */
function headroomSignature(steps: readonly TraceStep[]): string {
  return JSON.stringify(steps.map(({ code, policy, after }) => [code, policy?.name, after]));
}

/** Returns true if a reconcile would neither change the compute nor record anything new about it. */
export function isSettled(mode: Mode, { compute, record, plan, decision }: EvaluatedCompute): boolean {
  if (plan.verdict !== 'none' || !isRestoreUpToDate(record, compute, decision)) return false;
  // Without the policies of its team nothing is enforced or agreed with.
  if (mode === 'observe' || notLoadedAmong(decision.freezes)) return true;
  // The record must have the values that ebb agrees with, since a later manual change is recognised by them.
  return record.enforcedSinceMs !== undefined && withAgreed(record, compute, decision) === record;
}

export interface AdoptDeps extends EvaluateDeps {
  fleet: Fleet;
  store: Pick<Store, 'records'>;
}

/**
 * Evaluates a project that another daemon may have reconciled, without a request to the control API. Starts from the latest known state of
 * each compute (cached, or by a later evaluation), and adds the changes that any daemon has recorded since.
 */
export async function adoptProject(deps: AdoptDeps, projectId: string): Promise<void> {
  const { fleet } = deps;
  const askedAtMonotonicMs = deps.clock.monotonicMs();
  const records = await deps.store.records(projectId);
  const cachedProject = fleet.cachedProject(projectId);
  if (!cachedProject) return;
  const computes = cachedProject.computes.map((compute) => {
    const { computeId } = compute;
    const isNewer = fleet.evaluatedAtMonotonicMs(computeId) >= cachedProject.readAtMonotonicMs;
    const latest = isNewer ? fleet.latestEvaluation(computeId)?.compute : undefined;
    const record = records.get(computeId);
    const isWriteIncluded = record?.lastSentAtMs === cachedProject.includedWrites?.get(computeId);
    if (!latest && isWriteIncluded) return compute;
    return withApplied(latest ?? compute, record, cachedProject.readAtMs);
  });
  for (const evaluatedCompute of evaluateQuietly(deps, computes, records)) {
    // An evaluation that this daemon has made meanwhile used a newer record.
    const { computeId } = evaluatedCompute.compute;
    if (fleet.evaluatedAtMonotonicMs(computeId) < askedAtMonotonicMs) fleet.adopt(evaluatedCompute);
  }
}

/** Adopts a project ({@link adoptProject}), and returns true if a reconcile would neither change the project nor record anything new. */
export async function adoptsSettled(deps: AdoptDeps, projectId: string): Promise<boolean> {
  await adoptProject(deps, projectId);
  const computes = deps.fleet.cachedProject(projectId)?.computes ?? [];
  const evaluated = computes.map(({ computeId }) => deps.fleet.latestEvaluation(computeId));
  return evaluated.every((one) => one !== undefined && isSettled(deps.mode, one));
}
