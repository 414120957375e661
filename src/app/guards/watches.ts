/**
 * The leader watches computes after lowerings. A document for each guard has the state of its watches. A finding goes into the record of the
 * compute, with its audit entry and notifications. So a successor continues where the leader was stopped: a harm stays in the document until
 * the record has it, and a record takes a harm only once.
 */

import { firstNames } from '../../common/names.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { TraceStep } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { type Harm, LONGEST_WATCH_MS, NOTHING_WATCHED, type WatchStep, watchRound } from '../../domain/guards/watch.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import { describeFinding, obstacleToUndo } from '../../domain/notifications/of-record.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import { termsDigest } from '../../domain/policy/policy-set.ts';
import type { ComputeRecord, GuardFinding } from '../../domain/records/compute-record.ts';
import { type Lowering, loweringOf, withFinding } from '../../domain/records/lowerings.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerByCurrentRules } from '../fleet/owner-now.ts';
import { withProjectLease } from '../leases/locked-project.ts';
import { outboxEntries, recordEntries } from '../notifications/notify.ts';
import type { CurrentRules } from '../rules.ts';
import { decidedBy } from '../telemetry/history.ts';
import { requestReconcile, type TriggerDeps } from '../triggers.ts';
import type { GuardAnswer } from './ask.ts';
import { observed } from './observed.ts';
import { type StoredWatch, WATCHES } from './stored-states.ts';

export interface GuardWatchesDeps extends TriggerDeps {
  store: Store;
  fleet: Fleet;
  rules: CurrentRules;
  telemetry: Telemetry;
  mode: 'enforce' | 'observe';
  /** Decides and plans for a compute with another record, at this instant. */
  evaluate(subject: { compute: Compute; record: ComputeRecord; projectBusy: boolean }): EvaluatedCompute;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
  leaderLease: { isHeld(): boolean };
  /** False if these policies are not those of the group, or the clock is wrong. */
  mayWrite(): Promise<{ ok: boolean }>;
}

export interface GuardWatches {
  /** Returns when the computes to watch were lowered, by compute id, milliseconds since the epoch; empty if this daemon does not watch. */
  lowered(computes: readonly Compute[], nowMs: number): ReadonlyMap<string, number>;
  /** Continues the watches of a guard by its answer. */
  advance(policy: GuardPolicy, computes: readonly Compute[], answer: GuardAnswer, nowMs: number): Promise<void>;
  /** Forgets the watches of all other guards. On a daemon that does not watch, only clears the metrics. */
  keepOnly(policies: readonly GuardPolicy[]): Promise<void>;
  /** Stores the watches again that the store has lost. */
  writeBack(): Promise<void>;
}

export function createGuardWatches(deps: GuardWatchesDeps): GuardWatches {
  const { store, fleet, mode, leaderLease, telemetry } = deps;
  const { metrics } = telemetry;
  const isWatching = () => mode === 'enforce' && leaderLease.isHeld();
  let keptGuards: string | undefined;
  /** The watches as this daemon last stored or read them while leading, by guard. They outlive a loss of the store's data. */
  const known = new Map<string, StoredWatch>();

  const lowered: GuardWatches['lowered'] = (computes, nowMs) =>
    new Map(
      (isWatching() ? computes : []).flatMap(({ computeId }) => {
        const evaluated = fleet.latestEvaluation(computeId);
        const lowering = evaluated && loweringNow(evaluated, nowMs);
        return lowering ? [[computeId, lowering.atMs] as const] : [];
      }),
    );

  const recordOf = (computeId: string) => fleet.latestEvaluation(computeId)?.record;

  return {
    lowered,
    async advance(policy, computes, answer, nowMs) {
      if (!isWatching() || !(await deps.mayWrite()).ok) return;
      const document = await WATCHES.open(store, policy.name);
      const terms = termsOf(policy);
      const last = document.value ?? known.get(policy.name);
      const before = last?.terms === terms ? last.memory : NOTHING_WATCHED;
      const judged = observed(computes, answer, { loweredAtMs: lowered(computes, nowMs), recordOf });
      const step = watchRound(policy, before, { atMs: nowMs, computes: judged });
      const entries = notificationsOf(deps, policy, step, nowMs);
      if (entries.length > 0) await store.appendOutbox(entries);
      const isNews = last !== document.value || JSON.stringify(step.memory) !== JSON.stringify(before);
      // If the document was replaced meanwhile, another leader continues the watches, and makes the same findings.
      if (isNews && !(await document.replace({ terms, memory: step.memory }))) return;
      known.set(policy.name, { terms, memory: step.memory });
      report(telemetry, policy.name, step);
      metrics.set('ebb_guard_floors', { guard: policy.name }, floorsOf(fleet, policy));
      for (const harm of step.memory.harms) await recordHarm(deps, policy, harm, nowMs);
    },
    async writeBack() {
      for (const [guard, watch] of known) await WATCHES.fill(store, guard, watch);
    },
    async keepOnly(policies) {
      // From now on, another daemon continues the watches.
      if (!isWatching()) known.clear();
      const mayKeep = isWatching() && (await deps.mayWrite()).ok;
      const names = mayKeep ? policies.map(({ name }) => name).toSorted() : undefined;
      if (keptGuards === JSON.stringify(names)) return;
      metrics.clear('ebb_guard_watched');
      metrics.clear('ebb_guard_floors');
      if (names) {
        const stored = await WATCHES.all(store);
        const isUnwanted = (name: string) => !names.includes(name);
        await WATCHES.delete(store, [...stored.keys()].filter(isUnwanted));
        for (const guard of [...known.keys()].filter(isUnwanted)) known.delete(guard);
      }
      keptGuards = JSON.stringify(names);
    },
  };
}

function termsOf({ source, query, match, badWhen, noData, forMs, watchMs, settleMs }: GuardPolicy): string {
  return JSON.stringify([source, query, match, badWhen, noData, forMs, watchMs, settleMs]);
}

/** Returns notifications about several computes at once. Their ids contain stored instants, so that a successor queues none twice. */
function notificationsOf(
  { rules }: GuardWatchesDeps,
  { name, owner, notify: receivers = [] }: GuardPolicy,
  { tellCommon, events }: WatchStep,
  nowMs: number,
) {
  const base = { kind: 'guard' as const, atMs: nowMs, policy: name, receivers, ...(owner !== undefined && { owner }) };
  const blind = events.filter(({ outcome }) => outcome === 'no_samples');
  const notifications: Notification[] = [];
  if (tellCommon) {
    const { sinceMs, computeIds } = tellCommon;
    const cause = 'they were bad before, or others are bad too';
    const text = `${name}: ${firstNames(computeIds, 3)} bad since ${isoInstant(sinceMs)}; their lowering is not held to be the cause, since ${cause}: nothing is set back`;
    notifications.push({ ...base, id: `guard_common_cause:${name}:${sinceMs}`, text });
  }
  if (blind.length > 0) {
    const loweredAtMs = Math.min(...blind.map((one) => one.loweredAtMs));
    const ids = blind.map(({ computeId }) => computeId);
    const text = `${name} has no values of ${firstNames(ids, 3)} since a lowering: its effect is unknown`;
    notifications.push({
      ...base,
      id: `guard_no_samples:${name}:${loweredAtMs}`,
      text,
      command: `ebb guard test ${name}`,
    });
  }
  return outboxEntries(rules.current.notify, notifications);
}

function report({ log, metrics }: Telemetry, guard: string, { memory, events }: WatchStep): void {
  const open = Object.values(memory.computes).filter(({ watch }) => watch && !watch.isOver).length;
  metrics.set('ebb_guard_watched', { guard }, open);
  for (const { computeId: compute, outcome, loweredAtMs, badSinceMs } of events) {
    metrics.increment('ebb_guard_watches_total', { guard, outcome });
    if (outcome === 'healthy' || outcome === 'harm') continue;
    const event = outcome === 'no_samples' ? 'ebb.guard_no_samples' : 'ebb.guard_common_cause';
    const fields = { event, guard, compute, lowered_at: isoInstant(loweredAtMs) };
    const since = badSinceMs === undefined ? '' : ` since ${isoInstant(badSinceMs)}`;
    const why =
      outcome === 'no_samples' ? 'has no values of it' : `finds it bad${since}, for a cause that others share`;
    log.warn(fields, `${compute} was lowered, and guard ${guard} ${why}: nothing is set back`);
  }
}

/** Counts the computes that a guard keeps above the size that policies want now. */
function floorsOf(fleet: Fleet, { name }: GuardPolicy): number {
  const all = [...fleet.evaluatedComputes()];
  const isKept = ({ code, policy }: TraceStep) => code === 'guard_floor' && policy?.name === name;
  return all.filter(({ decision }) => decision.trace.some(isKept)).length;
}

/** Stores a harm in the record of the compute, unless the record already has it or the lowering is no longer in force. */
async function recordHarm(deps: GuardWatchesDeps, { name: guard, remedy }: GuardPolicy, harm: Harm, nowMs: number) {
  const { fleet, store, rules } = deps;
  const evaluated = fleet.latestEvaluation(harm.computeId);
  if (!evaluated || loweringNow(evaluated, nowMs)?.atMs !== harm.loweredAtMs) return;
  const { compute } = evaluated;
  const { projectId, computeId } = compute;
  const text = await withProjectLease(deps, projectId, async (lease) => {
    const before = (await store.records(projectId)).get(computeId);
    const lowering = before && loweringOf(before, nowMs - LONGEST_WATCH_MS);
    if (!before || lowering?.atMs !== harm.loweredAtMs) return undefined;
    const undone = withFinding(before, { ...harm, guard, remedy }, lowering, (name) => {
      const policy = rules.current.policies.set.policies.find((one) => one.name === name);
      return policy && { name: policy.name, terms: termsDigest(policy) };
    });
    const after = withObstacle(deps, compute, undone);
    const ownerOf = ownerByCurrentRules(deps);
    const message = describeFinding(compute, after.guardFinding);
    const { from, to } = after.guardFinding;
    const audit = {
      projectId,
      computeId,
      kind: 'guard' as const,
      ...decidedBy(rules),
      owner: ownerOf(compute),
      policy: guard,
      from,
      to,
      atMs: nowMs,
      reasons: [{ code: 'guard_harm', message }, ...undoOf(after)],
    };
    const outbox = recordEntries(rules.current, { compute, before, after, nowMs }, ownerOf);
    return (await store.putRecord(projectId, computeId, after, lease, { audit, outbox })) ? message : undefined;
  });
  // While another process has the lease, the next round tries again.
  if (text === undefined) return;
  deps.telemetry.log.warn({ event: 'ebb.guard_harm', guard, project: projectId, compute: computeId }, text);
  await requestReconcile(deps, projectId);
}

/** Returns a further reason for the audit entry if the lowering is taken back. */
function undoOf({ guardFinding }: { guardFinding: GuardFinding }) {
  if (guardFinding.remedy === 'notify') return [];
  return [{ code: 'guard_floor', message: 'what was lowered is taken back' }];
}

/** Adds to the finding what prevents ebb from setting the lowering back now, for the message about it. */
function withObstacle<R extends ComputeRecord & { guardFinding: GuardFinding }>(
  deps: GuardWatchesDeps,
  compute: Compute,
  record: R,
): R {
  if (record.guardFinding.remedy === 'notify') return record;
  const obstacle = obstacleToUndo(deps.evaluate({ compute, record, projectBusy: false }));
  return obstacle === undefined ? record : { ...record, guardFinding: { ...record.guardFinding, obstacle } };
}

/** Returns the lowering to watch; undefined while a hold applies to the compute, since then its values are a person's. */
function loweringNow({ record, decision }: EvaluatedCompute, nowMs: number): Lowering | undefined {
  return decision.holds.length > 0 ? undefined : loweringOf(record, nowMs - LONGEST_WATCH_MS);
}
