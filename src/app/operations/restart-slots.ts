import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { RESTORE } from '../../domain/overrides/restore.ts';
import { atMostAllowed, atMostRetryMs, atOnceAllowed } from '../../domain/plan/gates/disruption.ts';
import type { Action } from '../../domain/plan/plan.ts';
import { type AtMost, resolveDisruption } from '../../domain/policy/disruption.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SlotRequest, Store } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CompiledRules } from '../rules.ts';

/** An operation that has not ended after this time counts as failed, in milliseconds. */
export const OPERATION_DEADLINE_MS = 10 * 60 * 1000;

/** After the refusal of an `at_once` slot, the policy counts as full for this long, in milliseconds. Then the project tries again. */
export const SLOT_RETRY_MS = 5_000;

/** A change that was refused a slot within this time counts as waiting for a slot, in milliseconds. */
const WAITING_MS = 60_000;

/** Grants less than this apart are remembered as one span, in milliseconds. The same holds for refusals. */
const ANSWER_STEP_MS = 10_000;

const UNLIMITED = Number.MAX_SAFE_INTEGER;

type SlotRules = Pick<CompiledRules, 'policies' | 'disruption'>;

/** Slots for restarts: they limit how many computes of a policy are disturbed at once, over all daemons. */
export interface Slots {
  /** Returns true if a slot of the policy's `at_once` limit was refused a moment ago. */
  isAtOnceReached(policy: string): boolean;
  /** Returns true if a slot of the policy's `at_most` limit was refused recently. */
  isAtMostReached(policy: string): boolean;
  /**
   * Returns `reached` if this daemon was refused a slot of the policy between these instants (milliseconds since the epoch), `free` if it was
   * only granted slots, and `unseen` if it asked for none. Only the last hour is remembered.
   */
  limitBetween(policy: string, fromMs: number, toMs: number): 'reached' | 'free' | 'unseen';
  /** Returns the most urgent kind of change for which this daemon was refused a slot in the last minute; undefined if there was none. */
  refusedLately(policy: string): 'raise' | 'lowering' | undefined;
  /**
   * Returns false if a restart would be refused a slot of `at_once` now. Within {@link SLOT_RETRY_MS}, only as many restarts are admitted as
   * there are free slots.
   */
  admits(rules: SlotRules, computeId: string, action: Action): Promise<boolean>;
  /**
   * Takes a slot if the policy may disturb the compute now; otherwise returns undefined. The slot stays taken until it is released, or until
   * {@link OPERATION_DEADLINE_MS} has passed; a slot of `at_most` stays taken for the limit's window. Urgent changes always get slots.
   */
  take(rules: SlotRules, computeId: string, action: Action): Promise<TakenSlot | undefined>;
  /** Releases the slot of `at_once`, after the operations of a restart have ended. */
  release(computeId: string, policy: string): Promise<void>;
}

export interface TakenSlot {
  /** Releases the slots of a restart that was not made. Slots that the compute held before, for an earlier restart, stay taken. */
  giveBack(): Promise<void>;
}

interface SlotDeps {
  store: Pick<Store, 'takeSlot' | 'releaseSlot' | 'slotsInUse'>;
  fleet: Pick<Fleet, 'evaluatedComputes'>;
  clock: Pick<Clock, 'now'>;
}

export function createSlots({ store, fleet, clock }: SlotDeps): Slots {
  const atOnceReachedUntilMs = new Map<string, number>();
  const atMostReachedUntilMs = new Map<string, number>();
  const refusals = createAnswers();
  const raiseRefusals = createAnswers();
  const grants = createAnswers();
  const admit = createAdmission({ store, fleet, clock });

  const isAtOnceReached = (policy: string) => (atOnceReachedUntilMs.get(policy) ?? 0) > clock.now();

  async function takeAtOnce(request: Omit<SlotRequest, 'untilMs'>, action: Action): Promise<boolean> {
    const { policy, nowMs } = request;
    const isTaken = await store.takeSlot({ ...request, untilMs: nowMs + OPERATION_DEADLINE_MS });
    if (isTaken && !action.urgent) atOnceReachedUntilMs.delete(policy);
    if (!isTaken) {
      atOnceReachedUntilMs.set(policy, nowMs + SLOT_RETRY_MS);
      refusals.note(policy, nowMs);
      if (action.raises) raiseRefusals.note(policy, nowMs);
    }
    return isTaken;
  }

  async function takeAtMost(limit: AtMost, request: Omit<SlotRequest, 'untilMs'>): Promise<boolean> {
    const { policy, nowMs } = request;
    const isTaken = await store.takeSlot({ ...request, policy: atMostName(policy), untilMs: nowMs + limit.windowMs });
    if (isTaken) atMostReachedUntilMs.delete(policy);
    else {
      atMostReachedUntilMs.set(policy, nowMs + atMostRetryMs(limit));
      refusals.note(policy, nowMs);
    }
    return isTaken;
  }

  return {
    isAtOnceReached,
    isAtMostReached: (policy) => (atMostReachedUntilMs.get(policy) ?? 0) > clock.now(),
    limitBetween(policy, fromMs, toMs) {
      if (refusals.wereBetween(policy, fromMs, toMs)) return 'reached';
      return grants.wereBetween(policy, fromMs, toMs) ? 'free' : 'unseen';
    },
    refusedLately(policy) {
      const nowMs = clock.now();
      if (raiseRefusals.wereBetween(policy, nowMs - WAITING_MS, nowMs)) return 'raise';
      return refusals.wereBetween(policy, nowMs - WAITING_MS, nowMs) ? 'lowering' : undefined;
    },
    async admits(rules, computeId, action) {
      if (action.urgent || !action.disconnects) return true;
      return !isAtOnceReached(action.policy) && admit(rules, computeId, action);
    },
    async take(rules, computeId, action) {
      const { policy, urgent = false } = action;
      const nowMs = clock.now();
      const { atOnce, atMost } = slotLimits(rules, [...fleet.evaluatedComputes()], action, nowMs);
      const request = { policy, computeId, nowMs };
      const names = [policy, ...(atMost ? [atMostName(policy)] : [])];
      // `giveBack` must not release a slot that the compute holds for an earlier restart, which may still be in progress.
      const inUse = await Promise.all(names.map((name) => store.slotsInUse(name, nowMs)));
      const notHeldBefore = names.filter((_, index) => !inUse[index]?.includes(computeId));
      const giveBack = async () => {
        for (const name of notHeldBefore) await store.releaseSlot(name, computeId);
        atOnceReachedUntilMs.delete(policy);
        atMostReachedUntilMs.delete(policy);
      };
      if (!(await takeAtOnce({ ...request, allowed: urgent ? UNLIMITED : atOnce }, action))) return undefined;
      const allowed = urgent ? UNLIMITED : atMost?.allowed;
      if (!atMost || (await takeAtMost(atMost.limit, { ...request, allowed: allowed ?? UNLIMITED }))) {
        grants.note(policy, nowMs);
        return { giveBack };
      }
      if (notHeldBefore.includes(policy)) await store.releaseSlot(policy, computeId);
      return undefined;
    },
    async release(computeId, policy) {
      await store.releaseSlot(policy, computeId);
      atOnceReachedUntilMs.delete(policy);
    },
  };
}

/** Admits as many computes as there are free slots. An admitted compute counts for {@link SLOT_RETRY_MS}, or until it has its slot. */
function createAdmission({ store, fleet, clock }: SlotDeps) {
  const admitted = new Map<string, Map<string, number>>();
  return async (rules: SlotRules, computeId: string, action: Action): Promise<boolean> => {
    const { policy } = action;
    const nowMs = clock.now();
    const inUse = await store.slotsInUse(policy, nowMs);
    if (inUse.includes(computeId)) return true;
    const { atOnce } = slotLimits(rules, [...fleet.evaluatedComputes()], action, nowMs);
    const before = [...(admitted.get(policy) ?? [])];
    const pending = new Map(before.filter(([id, untilMs]) => untilMs > nowMs && !inUse.includes(id)));
    const isAdmitted = pending.has(computeId) || inUse.length + pending.size < atOnce;
    if (isAdmitted) pending.set(computeId, nowMs + SLOT_RETRY_MS);
    admitted.set(policy, pending);
    return isAdmitted;
  };
}

/** Remembers for an hour when slots of policies were granted, or when they were refused. Instants are milliseconds since the epoch. */
function createAnswers() {
  const spans = new Map<string, { fromMs: number; toMs: number }[]>();
  return {
    note(policy: string, nowMs: number): void {
      const recent = (spans.get(policy) ?? []).filter(({ toMs }) => nowMs - toMs < HOUR_MS);
      const last = recent.at(-1);
      if (last && nowMs - last.toMs < ANSWER_STEP_MS) last.toMs = nowMs;
      else recent.push({ fromMs: nowMs, toMs: nowMs });
      spans.set(policy, recent);
    },
    wereBetween: (policy: string, fromMs: number, toMs: number): boolean =>
      (spans.get(policy) ?? []).some((span) => span.toMs >= fromMs && span.fromMs <= toMs),
  };
}

/** Returns the name of the slots of `at_most`. It contains a blank, so that it can't be the name of a policy. */
function atMostName(policy: string): string {
  return `${policy} at_most`;
}

/**
 * Returns how many computes a policy may disturb at once and, if it has an `at_most` limit, within a time window. Restarts by holds are not
 * limited, since each hold concerns one compute. A restore may concern the whole fleet, so the limits of the settings apply to it.
 */
function slotLimits(
  { policies, disruption }: SlotRules,
  fleet: readonly EvaluatedCompute[],
  { policy: name, disruption: ownRule }: Action,
  nowMs: number,
): { atOnce: number; atMost?: { allowed: number; limit: AtMost } } {
  const index = policies.set.policies.findIndex((policy) => policy.name === name);
  const policy = policies.set.policies[index];
  if (!policy && name !== RESTORE) return { atOnce: UNLIMITED };
  const selected = policy
    ? fleet.filter(({ compute }) => policies.selects(index, compute, nowMs)).length
    : fleet.length;
  const { atOnce, atMost: limit } = resolveDisruption(ownRule, disruption);
  return {
    atOnce: atOnceAllowed(selected, atOnce),
    ...(limit && { atMost: { allowed: atMostAllowed(selected, limit), limit } }),
  };
}
