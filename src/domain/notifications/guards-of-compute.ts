/** The verdicts, watches, findings and floors of guards for one compute. */

import { floorEndMs, floorsInEffect } from '../decide/stages/floors.ts';
import { type EvaluatedCompute, guardsOf } from '../evaluate/evaluate.ts';
import { fieldsJson, verdictJson } from '../evaluate/fleet-plan-json.ts';
import { type DatedVerdict, describeWatch, type GuardState, verdictAt } from '../guards/state.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { GuardPolicy } from '../policy/kinds/guard.ts';
import type { Floor } from '../records/compute-record.ts';
import { isoInstant } from '../time/units.ts';
import { describeFinding } from './of-record.ts';

export interface GuardFacts {
  policies: CompiledPolicies;
  /** The last verdicts and the watches of the compute; undefined if nothing is known. */
  states: readonly GuardState[] | undefined;
  atMs: number;
}

const NOT_ASKED: DatedVerdict = {
  state: 'unknown',
  message: 'no verdict is known: a daemon asks while the compute is awake',
};

interface GuardView {
  guard: GuardPolicy;
  verdict: DatedVerdict;
  watch: GuardState['watch'];
}

export function guardViews({ compute }: EvaluatedCompute, { policies, states, atMs }: GuardFacts): GuardView[] {
  return guardsOf(policies, compute, atMs).map((guard) => ({
    guard,
    verdict: verdictAt(states, guard, atMs) ?? NOT_ASKED,
    watch: states?.find((state) => state.guard === guard.name && state.watch)?.watch,
  }));
}

interface FloorView extends Floor {
  field: 'size' | 'suspend_timeout';
  /** False where it changes nothing now. */
  isInEffect: boolean;
  endMs: number | undefined;
}

export function floorViews(
  { compute, record, decision }: EvaluatedCompute,
  { policies, atMs }: GuardFacts,
): FloorView[] {
  const floors = floorsInEffect(policies, compute, record.floors, atMs);
  return (['size', 'suspend_timeout'] as const).flatMap((field) => {
    const floor = floors[field];
    if (!floor) return [];
    const isInEffect = decision.trace.some(({ code, group }) => code === 'guard_floor' && group === field);
    return [{ ...floor, field, isInEffect, endMs: floorEndMs(policies, floor) }];
  });
}

/** The views as JSON. Each field is absent if it would be empty. */
export function guardsJson(evaluated: EvaluatedCompute, facts: GuardFacts) {
  const guards = guardViews(evaluated, facts).map(({ guard, verdict, watch }) => ({
    guard: guard.name,
    remedy: guard.remedy,
    asked_first:
      evaluated.plan.guards?.some(({ policy, isAskedFirst }) => isAskedFirst && policy === guard.name) ?? false,
    verdict: verdictJson(verdict),
    watch: watch ? { ...watchJson(watch), message: describeWatch(watch, guard.watchMs) } : null,
  }));
  const { guardFinding: found } = evaluated.record;
  const floors = floorViews(evaluated, facts);
  return {
    ...(guards.length > 0 && { guards }),
    ...(found && {
      guard_finding: {
        guard: found.guard,
        lowered_at: isoInstant(found.loweredAtMs),
        bad_since: isoInstant(found.badSinceMs),
        found_at: isoInstant(found.foundAtMs),
        message: describeFinding(evaluated.compute, found, 'later'),
      },
    }),
    ...(floors.length > 0 && {
      floors: floors.map(({ field, guard, sinceMs, fields, policy, isInEffect, endMs }) => ({
        field,
        guard,
        policy,
        since: isoInstant(sinceMs),
        in_effect: isInEffect,
        until: endMs === undefined ? null : isoInstant(endMs),
        at_least: fieldsJson(fields),
        release: `ebb release ${evaluated.compute.computeId} --guard`,
      })),
    }),
  };
}

function watchJson({ loweredAtMs, sampledMs, blindMs, badSinceMs, isCommon }: NonNullable<GuardState['watch']>) {
  return {
    lowered_at: isoInstant(loweredAtMs),
    sampled_seconds: Math.round(sampledMs / 1000),
    blind_seconds: Math.round(blindMs / 1000),
    bad_since: badSinceMs === undefined ? null : isoInstant(badSinceMs),
    common_cause: isCommon === true,
  };
}
