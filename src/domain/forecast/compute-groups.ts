import { type Compute, type ComputeSettings, settingsOf } from '../compute/compute.ts';
import { waveStarts } from '../decide/boundaries.ts';
import { flipsOfAll } from '../decide/control-group.ts';
import { stepInstants } from '../decide/stages/budget.ts';
import { floorInstants } from '../decide/stages/floors.ts';
import { getOrAdd } from '../grouping.ts';
import { type Freeze, mayConcern } from '../overrides/freezes.ts';
import type { Hold } from '../overrides/holds.ts';
import type { Respected } from '../plan/manual-changes.ts';
import {
  type CompiledPolicies,
  compilePolicies,
  withBudgetSteps,
  withReadyWaves,
} from '../policy/compiled-policies.ts';
import {
  type ChangeFacts,
  type ComputeRecord,
  decidingFacts,
  type Floors,
  type TrialRecords,
} from '../records/compute-record.ts';
import type { Span } from '../time/span.ts';

export interface ForecastSubject {
  compute: Compute;
  /** Absent: the present settings. */
  baseline?: ComputeSettings | undefined;
  /** The stored draws of trials. */
  trials?: TrialRecords | undefined;
  /** Floors that guards have set by undoing lowerings. */
  floors?: Floors | undefined;
  lastDisruption?: ComputeRecord['lastDisruption'];
  /** When ebb began to enforce, and the last changes; absent without a stored record. */
  changes?: ChangeFacts | undefined;
  /** Holds; those of other computes are ignored. */
  holds?: readonly Hold[] | undefined;
  /** People's freezes; those of other computes are ignored. */
  freezes?: readonly Freeze[] | undefined;
  /** Absent: no manual change is respected. */
  respected?: Respected | undefined;
}

/** A subject from a compute and its stored record. `baseline` is used only without a record. */
export function subjectOf(
  compute: Compute,
  record: ComputeRecord | undefined,
  { baseline, ...overrides }: Pick<ForecastSubject, 'baseline' | 'holds' | 'freezes' | 'respected'>,
): ForecastSubject {
  const facts = { ...decidingFacts(record), baseline: record?.baseline ?? baseline };
  return { compute, ...facts, lastDisruption: record?.lastDisruption, changes: record, ...overrides };
}

/** Computes that have the same forecast. */
interface ComputeClass {
  subject: ForecastSubject;
  /** Instants at which decisions may change for this class only, such as those of holds, freezes, flips of trials and minimum ages. */
  ownInstants: readonly number[];
  /** The indexes of the computes in the input. */
  members: number[];
}

/** Computes that the same policies select. */
export interface PolicyGroup {
  /** The policies that select the group, and no others. */
  policies: CompiledPolicies;
  /** Instants at which decisions may change for the whole group, from the start on, ascending. */
  instants: readonly number[];
  classes: ComputeClass[];
}

interface GroupingInput extends Span {
  policies: CompiledPolicies;
  subjects: readonly ForecastSubject[];
}

/**
 * Groups computes by the policies that select them, and within a group by everything else that affects decisions. Even large fleets
 * have few such classes.
 */
export function groupComputes({ policies, subjects, fromMs, toMs }: GroupingInput): PolicyGroup[] {
  const groups = new Map<string, PolicyGroup>();
  const classByKey = new Map<string, ComputeClass>();
  for (const [member, subject] of subjects.entries()) {
    const selecting = policies.selecting(subject.compute);
    const flips = flipsOfAll(policies, subject);
    const ownInstants = instantsOf(subject, { policies, selecting, flips }).filter((ms) => ms > fromMs && ms < toMs);
    const key = keyOf(subject, { policies, fromMs, selecting, flips, ownInstants });
    const sameClass = classByKey.get(key);
    if (sameClass) {
      sameClass.members.push(member);
      continue;
    }
    const newClass = { subject, ownInstants, members: [member] };
    classByKey.set(key, newClass);
    const group = getOrAdd(groups, selecting.join(), () => newGroup(policies, selecting, { fromMs, toMs }));
    group.classes.push(newClass);
  }
  return [...groups.values()];
}

/** The policies that select a subject, and the instants at which its decisions may change. */
interface SubjectSelection {
  policies: CompiledPolicies;
  fromMs: number;
  selecting: readonly number[];
  flips: readonly number[];
  ownInstants: readonly number[];
}

/** A key that is equal only for subjects with the same decisions. Computes with holds are never equal. */
function keyOf(
  subject: ForecastSubject,
  { policies, fromMs, selecting, flips, ownInstants }: SubjectSelection,
): string {
  const { compute, baseline = compute, holds = [], trials = '', floors = '', respected = '' } = subject;
  const isHeld = holds.some(({ computeId }) => computeId === compute.computeId);
  const oldEnough = selecting.filter((index) => policies.selects(index, compute, fromMs));
  const values = [compute, baseline].map((settings) => Object.values(settingsOf(settings)).join());
  // Steps of a budget limit one account, and may exempt branches by their roles.
  const limitedBy = policies.budgetSteps.length > 0 ? [compute.account, compute.branchRoles] : [];
  return [
    selecting,
    oldEnough,
    ownInstants,
    ...values,
    flips.filter((ms) => ms <= fromMs).length,
    JSON.stringify([trials, floors, respected, freezesOf(subject).map(({ id }) => id), limitedBy]),
    isHeld ? compute.computeId : '',
  ].join(' ');
}

function instantsOf(
  subject: ForecastSubject,
  { policies, selecting, flips }: Pick<SubjectSelection, 'policies' | 'selecting' | 'flips'>,
): number[] {
  const { compute, holds = [] } = subject;
  const holdInstants = holds
    .filter(({ computeId }) => computeId === compute.computeId)
    .flatMap(({ createdAtMs, expiresAtMs }) => [createdAtMs, expiresAtMs]);
  const minAgeInstants = selecting.map(
    (index) => compute.createdAtMs + (policies.set.policies[index]?.select.minAgeMs ?? 0),
  );
  return sortedUnique([
    ...holdInstants,
    ...freezesOf(subject).map(({ expiresAtMs }) => expiresAtMs),
    ...Object.values(subject.respected ?? {}),
    ...minAgeInstants,
    ...flips,
    ...stepInstants(policies, compute),
    ...waveStarts(policies, compute),
    ...floorInstants(policies, subject.floors),
  ]);
}

/** The freezes by people that concern the subject. */
export function freezesOf({ compute, freezes = [] }: ForecastSubject): readonly Freeze[] {
  return freezes.filter(({ select }) => mayConcern(select)(compute));
}

function newGroup(
  { set, budgetSteps, readyWaves }: CompiledPolicies,
  selecting: readonly number[],
  span: Span,
): PolicyGroup {
  const selected = compilePolicies({ ...set, policies: set.policies.filter((_, index) => selecting.includes(index)) });
  const policies = withReadyWaves(withBudgetSteps(selected, budgetSteps), readyWaves);
  const changes = [...policies.set.policies.keys()].flatMap((index) => changeInstants(policies, index, span));
  return { policies, instants: sortedUnique([span.fromMs, ...changes]), classes: [] };
}

function changeInstants(policies: CompiledPolicies, index: number, { fromMs, toMs }: Span): number[] {
  const changes: number[] = [];
  let instantMs = policies.nextChangeAfter(index, fromMs);
  while (instantMs !== undefined && instantMs < toMs) {
    changes.push(instantMs);
    instantMs = policies.nextChangeAfter(index, instantMs);
  }
  return changes;
}

function sortedUnique(instants: readonly number[]): number[] {
  return [...new Set(instants)].sort((a, b) => a - b);
}
