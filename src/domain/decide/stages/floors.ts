/**
 * Floors: the values below which nothing is lowered, since a guard took a lowering back. They follow from findings of guards, not from
 * policies. Instants are milliseconds since the epoch.
 */
import {
  type Compute,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  isRaise,
  largerSize,
  longerTimeout,
  type Size,
  sizeOf,
} from '../../compute/compute.ts';
import type { CompiledPolicies } from '../../policy/compiled-policies.ts';
import type { Guard } from '../../policy/directive.ts';
import type { DisruptionRule } from '../../policy/disruption.ts';
import { asKind } from '../../policy/kinds/kinds.ts';
import type { PolicyBase } from '../../policy/policy-base.ts';
import { termsDigest } from '../../policy/policy-set.ts';
import type { Floor, Floors } from '../../records/compute-record.ts';
import { type Draft, note, stage } from './draft.ts';

/** With `then: undo`, a guard restores a size only while the compute sleeps, however long that takes. */
const WHEN_ASLEEP: DisruptionRule = { when: 'idle', atDeadline: 'apply' };
const AT_ONCE: DisruptionRule = { when: 'any', atDeadline: 'apply' };

/** The floors whose lowering policy is unchanged. */
export function validFloors({ set }: CompiledPolicies, floors: Floors | undefined): Floors | undefined {
  if (!floors) return undefined;
  const isValid = ({ policy: name, terms }: Floor) =>
    set.policies.some((policy) => policy.name === name && termsDigest(policy) === terms);
  return Object.fromEntries(Object.entries(floors).filter(([, floor]) => isValid(floor)));
}

/** The floors that hold at an instant: their lowering policy is unchanged, and their guard enforces, selects the compute and takes lowerings back. */
export function floorsInEffect(
  policies: CompiledPolicies,
  compute: Compute,
  floors: Floors | undefined,
  instantMs: number,
): Floors {
  const { guard: guards } = policies.effectiveFor(compute, instantMs).enforced;
  const valid = Object.entries(validFloors(policies, floors) ?? {});
  return Object.fromEntries(valid.filter(([, floor]) => guardOf(floor, guards, instantMs)));
}

/** The instants at which floors begin or end. */
export function floorInstants(policies: CompiledPolicies, floors: Floors | undefined): number[] {
  return FIELD_GROUPS.flatMap((group) => {
    const floor = floors?.[group];
    return floor ? [floor.sinceMs, floorEndMs(policies, floor) ?? []].flat() : [];
  });
}

/**
 * After budget steps and before headroom: keeps values at least at their floors. A raise that a policy wants anyway keeps the disruption
 * rules of that policy, so that it is in time.
 */
export const keepFloors = stage(['guard'], (draft, input) => {
  for (const [group, floor] of Object.entries(input.floors ?? {}) as [FieldGroup, Floor][]) {
    const guard = guardOf(floor, input.effective.guard, input.instantMs);
    if (!guard) continue;
    const { compute } = input;
    const values =
      group === 'size'
        ? raisedToFloor(draft.size, sizeOf(compute), fieldsOf('size', floor.fields) as Size | undefined, largerSize)
        : raisedToFloor(
            draft.suspendTimeoutSeconds,
            compute.suspendTimeoutSeconds,
            floor.fields.suspendTimeoutSeconds,
            longerTimeout,
          );
    if (values.after === values.before) continue;
    const policy = { ...guard.policy, ...changeRules(draft, group, guard, compute) };
    note(draft, { group, code: 'guard_floor', policy, floor, ...values });
  }
});

/** The end of a floor by `retry`, milliseconds since the epoch; undefined if it has none. */
export function floorEndMs({ set }: CompiledPolicies, { guard: name, sinceMs }: Floor): number | undefined {
  const guard = asKind(
    set.policies.find((policy) => policy.name === name),
    'guard',
  );
  return guard?.retryMs === undefined ? undefined : sinceMs + guard.retryMs;
}

/** The guard of a floor; undefined if the floor does not hold now. */
function guardOf({ guard: name, sinceMs }: Floor, guards: readonly Guard[], instantMs: number): Guard | undefined {
  const guard = guards.find(({ policy }) => policy.name === name);
  if (!guard || guard.remedy === 'notify') return undefined;
  return isWithinRetry(sinceMs, guard.retryMs, instantMs) ? guard : undefined;
}

/** True until `retryMs` after a guard found a lowering harmful: until then the lowering is not tried again. */
export function isWithinRetry(sinceMs: number, retryMs: number, instantMs: number): boolean {
  return instantMs >= sinceMs && instantMs < sinceMs + retryMs;
}

/** The disruption rules of a change to the floor, and the deciding policy's rule for manual changes. */
function changeRules(draft: Draft, group: FieldGroup, { remedy }: Guard, compute: Compute): Partial<PolicyBase> {
  const { disruption, manualChanges } = draft.deciders[group]?.policy ?? {};
  const isRaisedAnyway = group === 'size' && draft.size !== null && isRaise(compute, draft.size);
  const raise = remedy === 'undo' ? WHEN_ASLEEP : AT_ONCE;
  return { disruption: { ...disruption, ...(!isRaisedAnyway && { raise }) }, ...(manualChanges && { manualChanges }) };
}

/** The value before and after the floor. If no policy sets a value any more, a compute that has at least the floor is left alone. */
function raisedToFloor<T>(before: T | null, present: T, floor: T | undefined, larger: (a: T, b: T) => T) {
  const withoutFloor = before ?? present;
  const after = floor === undefined ? withoutFloor : larger(withoutFloor, floor);
  return { before, after: after === withoutFloor ? before : after };
}
