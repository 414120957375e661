import {
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  isRaise,
  timeoutLength,
} from '../compute/compute.ts';
import type { ComputeRecord, Floors, GuardFinding } from './compute-record.ts';
import { sameFields } from './failures.ts';

/** ebb's last lowering of a compute. */
export interface Lowering {
  /** The answer to the last of its changes, milliseconds since the epoch. */
  atMs: number;
  changes: readonly {
    group: FieldGroup;
    from: Partial<ComputeSettings>;
    to: Partial<ComputeSettings>;
    /** The policy that wants the lower values; absent if none does any more. */
    policy?: string;
  }[];
}

/** The part of a record from which a lowering follows. */
export type LoweringFacts = Pick<ComputeRecord, 'lastApplied' | 'lastChanges' | 'setBy'> & {
  guardFinding?: Pick<GuardFinding, 'loweredAtMs'>;
  manual?: Partial<Record<FieldGroup, unknown>>;
  failures?: Partial<Record<FieldGroup, { lastAtMs: number }>>;
};

/**
 * The lowering after `sinceMs` that guards watch. Undefined if there is none, if it failed, or if a person has changed the field since. It
 * follows from the record alone, so it is stored in the same step as the change.
 */
export function loweringOf(record: LoweringFacts, sinceMs: number): Lowering | undefined {
  const concludedAtMs = record.guardFinding?.loweredAtMs ?? Number.NEGATIVE_INFINITY;
  const lowered = FIELD_GROUPS.flatMap((group) => {
    const change = record.lastChanges?.[group];
    const to = fieldsOf(group, record.lastApplied);
    // `lastApplied` also has values that a person set and that policies want. ebb did not change these.
    if (change?.to && to && !sameFields(change.to, to)) return [];
    if (!change || !to || record.manual?.[group] || !isLower(to, change.before)) return [];
    const { answeredAtMs: atMs, before: from } = change;
    const isFailed = (record.failures?.[group]?.lastAtMs ?? Number.NEGATIVE_INFINITY) >= atMs;
    if (isFailed || atMs <= concludedAtMs || atMs < sinceMs) return [];
    const policy = record.setBy?.[group];
    return [{ atMs, change: { group, from, to, ...(policy && { policy }) } }];
  });
  if (lowered.length === 0) return undefined;
  return { atMs: Math.max(...lowered.map(({ atMs }) => atMs)), changes: lowered.map(({ change }) => change) };
}

/** Compares one group of fields. A size is lower if its maximum is or, with an equal maximum, its minimum. A timeout is lower if it is shorter. */
export function isLower(to: Partial<ComputeSettings>, from: Partial<ComputeSettings>): boolean {
  const { minCu = 0, maxCu = 0, suspendTimeoutSeconds = 0 } = to;
  if (from.suspendTimeoutSeconds !== undefined)
    return timeoutLength(suspendTimeoutSeconds) < timeoutLength(from.suspendTimeoutSeconds);
  const { minCu: minBefore = 0, maxCu: maxBefore = 0 } = from;
  return isRaise({ minCu, maxCu }, { minCu: minBefore, maxCu: maxBefore });
}

/**
 * Returns the record with a guard's finding after a lowering. The lowering is then no longer watched. Unless the guard only notifies, the
 * record also gets floors. `policyOf` gives a policy and the digest of its terms; undefined for a person's change, which is not taken back.
 */
export function withFinding(
  record: ComputeRecord,
  found: Omit<GuardFinding, 'from' | 'to'>,
  { changes }: Lowering,
  policyOf: (name: string | undefined) => { name: string; terms: string } | undefined,
): ComputeRecord & { guardFinding: GuardFinding } {
  const { guard, foundAtMs: sinceMs } = found;
  const floors: Floors = { ...record.floors };
  let remedy: GuardFinding['remedy'] = 'notify';
  for (const { group, from, to, policy: name } of changes) {
    // A lowering that a floor has limited is still wanted by the policy of the floor.
    const floor = record.floors?.[group];
    const policy = policyOf(floor && floor.guard === name ? floor.policy : name);
    if (found.remedy === 'notify' || !policy) continue;
    floors[group] = { guard, sinceMs, fields: from, lowered: to, policy: policy.name, terms: policy.terms };
    remedy = found.remedy;
  }
  const from = Object.assign({}, ...changes.map((change) => change.from));
  const to = Object.assign({}, ...changes.map((change) => change.to));
  const { loweredAtMs, badSinceMs, foundAtMs } = found;
  const guardFinding = { guard, loweredAtMs, from, to, badSinceMs, foundAtMs, remedy };
  return { ...record, guardFinding, ...(Object.keys(floors).length > 0 && { floors }) };
}

/** The record after a person has released its floors; the same record if it has none. */
export function withoutFloors(record: ComputeRecord): ComputeRecord {
  const { floors, ...rest } = record;
  return floors ? rest : record;
}

/** Removes floors whose policy or guard is gone, so that they can't come into effect again. Returns the same record if there are none. */
export function withoutDeadFloors(record: ComputeRecord, mayExist: (policy: string) => boolean): ComputeRecord {
  const { floors, ...rest } = record;
  const all = Object.entries(floors ?? {});
  const living = all.filter(([, { policy, guard }]) => mayExist(policy) && mayExist(guard));
  if (living.length === all.length) return record;
  return living.length === 0 ? rest : { ...rest, floors: Object.fromEntries(living) };
}
