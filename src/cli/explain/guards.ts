/** What guards say of a compute, for `ebb explain`: verdicts, watches after lowerings, what was found, and floors. */

import { printable } from '../../common/safe-text.ts';
import { formatChange } from '../../domain/compute/compute-units.ts';
import { floorEndMs } from '../../domain/decide/stages/floors.ts';
import { type EvaluatedCompute, guardsOf } from '../../domain/evaluate/evaluate.ts';
import { fieldsJson, verdictJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { ageText, type DatedVerdict, describeWatch, type GuardState, verdictAt } from '../../domain/guards/state.ts';
import { describeFinding } from '../../domain/notifications/of-record.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { GuardPolicy } from '../../domain/policy/kinds/guard.ts';
import type { Floor } from '../../domain/records/compute-record.ts';
import { isoInstant } from '../../domain/time/units.ts';

export interface GuardFacts {
  policies: CompiledPolicies;
  /** What guards said last of the compute; undefined if nothing is known. */
  states: readonly GuardState[] | undefined;
  atMs: number;
}

const NOT_ASKED: DatedVerdict = {
  state: 'unknown',
  message: 'nothing is known of an answer: a daemon asks while it is awake',
};

interface GuardView {
  guard: GuardPolicy;
  verdict: DatedVerdict;
  watch: GuardState['watch'];
}

function viewsOf({ compute }: EvaluatedCompute, { policies, states, atMs }: GuardFacts): GuardView[] {
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

function floorsOf({ record, decision }: EvaluatedCompute, { policies }: GuardFacts): FloorView[] {
  return (['size', 'suspend_timeout'] as const).flatMap((field) => {
    const floor = record.floors?.[field];
    if (!floor) return [];
    const isInEffect = decision.trace.some(({ code, group }) => code === 'guard_floor' && group === field);
    return [{ ...floor, field, isInEffect, endMs: floorEndMs(policies, floor) }];
  });
}

/** Lines of text; none if no guard selects the compute and nothing was taken back. */
export function guardLines(one: EvaluatedCompute, facts: GuardFacts): string[] {
  const { compute, record } = one;
  const verdicts = viewsOf(one, facts).flatMap(({ guard, verdict, watch }) => {
    const age = verdict.atMs === undefined ? '' : ` (${ageText(verdict.atMs, facts.atMs)})`;
    const watched = watch ? [`  watched   by ${guard.name} ${describeWatch(watch, guard.watchMs)}`] : [];
    return [`  ${guard.name}  ${verdict.state}: ${verdict.message}${age}`, ...watched];
  });
  const { guardFinding } = record;
  const found = guardFinding ? [`  found     ${describeFinding(compute, guardFinding)}`] : [];
  const floors = floorsOf(one, facts);
  const floorLines = floors.map((floor) => {
    const { guard, sinceMs, fields, lowered, policy, isInEffect, endMs } = floor;
    const end = endMs === undefined ? `until ${policy} changes` : `until ${isoInstant(endMs)}, or ${policy} changes`;
    const change = formatChange({ ...compute, ...lowered }, fields);
    const idle = isInEffect ? '' : '; it changes nothing now';
    return `  floor     ${change} since ${isoInstant(sinceMs)}, by guard ${guard}, which was bad after ${policy} had lowered it; ${end}${idle}`;
  });
  const release = floors.length > 0 ? [`  to lower it again now: ebb release ${compute.computeId} --guard`] : [];
  return [...verdicts, ...found, ...floorLines, ...release].map(printable);
}

/** As {@link guardLines}, for programs; empty where there is nothing to say. */
export function guardsJson(one: EvaluatedCompute, facts: GuardFacts) {
  const guards = viewsOf(one, facts).map(({ guard, verdict, watch }) => ({
    guard: guard.name,
    remedy: guard.remedy,
    asked_first: one.plan.guards?.some(({ policy, asks }) => asks && policy === guard.name) ?? false,
    verdict: verdictJson(verdict),
    watch: watch ? watchJson(watch) : null,
  }));
  const { guardFinding: found } = one.record;
  const floors = floorsOf(one, facts);
  return {
    ...(guards.length > 0 && { guards }),
    ...(found && {
      guard_finding: {
        guard: found.guard,
        lowered_at: isoInstant(found.loweredAtMs),
        bad_since: isoInstant(found.badSinceMs),
        found_at: isoInstant(found.foundAtMs),
        message: describeFinding(one.compute, found),
      },
    }),
    ...(floors.length > 0 && {
      floors: floors.map(({ field, guard, sinceMs, fields, policy, isInEffect, endMs }) => ({
        ...{ field, guard, policy, since: isoInstant(sinceMs), in_effect: isInEffect },
        until: endMs === undefined ? null : isoInstant(endMs),
        at_least: fieldsJson(fields),
        release: `ebb release ${one.compute.computeId} --guard`,
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
