import { type Compute, type ComputeSettings, settingsOf } from '../compute/compute.ts';
import { waveStarts } from '../decide/boundaries.ts';
import { stepInstants } from '../decide/budget-steps.ts';
import { flipsOfAll } from '../decide/control-group.ts';
import type { Hold } from '../overrides/holds.ts';
import {
  type CompiledPolicies,
  compilePolicies,
  withBudgetSteps,
  withReadyWaves,
} from '../policy/compiled-policies.ts';
import type { ComputeRecord, TrialRecords } from '../records/compute-record.ts';

/** A compute and its facts. */
export interface ForecastSubject {
  compute: Compute;
  /** Its settings when ebb first saw it; the present ones if absent. */
  baseline?: ComputeSettings | undefined;
  /** The stored draws of trials. */
  trials?: TrialRecords | undefined;
  /** Its last restart, and the policy that made it. */
  lastDisruption?: ComputeRecord['lastDisruption'];
  /** Holds of any compute. */
  holds?: readonly Hold[] | undefined;
}

/** Computes of which all forecasts are the same. */
export interface Alike {
  /** One of them. */
  subject: ForecastSubject;
  /** At these a decision may change for them alone: when holds begin and end, they flip in a trial, or are old enough for a policy. */
  ownInstants: readonly number[];
  /** Their places in the list. */
  members: number[];
}

/** Computes that the same policies select. */
export interface Company {
  /** Only those policies: the wishes of others need not be computed. */
  policies: CompiledPolicies;
  /** Every instant at which a decision may change for any of them, from the start on, ascending. */
  instants: readonly number[];
  alike: Alike[];
}

interface Question {
  policies: CompiledPolicies;
  subjects: readonly ForecastSubject[];
  fromMs: number;
  toMs: number;
}

/**
 * Sorts computes by the policies that select them, and among those by the values from which they start: fleets are large, but
 * there are few kinds of computes.
 */
export function sortAlike({ policies, subjects, fromMs, toMs }: Question): Company[] {
  const companies = new Map<string, Company>();
  const known = new Map<string, Alike>();
  for (const [member, subject] of subjects.entries()) {
    const selecting = selectingEver(policies, subject.compute);
    const ownInstants = instantsOf(policies, selecting, subject).filter((ms) => ms > fromMs && ms < toMs);
    const key = keyOf({ policies, fromMs, selecting, ownInstants, subject });
    const alike = known.get(key);
    if (alike) {
      alike.members.push(member);
      continue;
    }
    const first = { subject, ownInstants, members: [member] };
    known.set(key, first);
    const company = companies.get(selecting.join()) ?? companyOf(policies, selecting, { fromMs, toMs });
    company.alike.push(first);
    companies.set(selecting.join(), company);
  }
  return [...companies.values()];
}

/** Two subjects with the same key get the same decisions; a hold is on one compute alone. */
function keyOf(
  of: Omit<Question, 'subjects' | 'toMs'> & { selecting: number[]; ownInstants: number[]; subject: ForecastSubject },
) {
  const { compute, baseline = compute, holds = [] } = of.subject;
  const held = holds.some(({ computeId }) => computeId === compute.computeId);
  const oldEnough = of.selecting.filter((index) => of.policies.selects(index, compute, of.fromMs));
  const values = [compute, baseline].map((settings) => Object.values(settingsOf(settings)).join());
  const flips = flipsOfAll(of.policies, of.subject).filter((ms) => ms <= of.fromMs).length;
  const before = JSON.stringify(of.subject.trials ?? '');
  return [of.selecting, oldEnough, of.ownInstants, ...values, flips, before, held ? compute.computeId : ''].join(' ');
}

/** Also the policies for which the compute is still too young. */
function selectingEver(policies: CompiledPolicies, compute: Compute): number[] {
  const everyIndex = [...policies.set.policies.keys()];
  return everyIndex.filter((index) => policies.selects(index, compute, Number.POSITIVE_INFINITY));
}

function instantsOf(policies: CompiledPolicies, selecting: readonly number[], subject: ForecastSubject): number[] {
  const { compute, holds = [] } = subject;
  const held = holds
    .filter(({ computeId }) => computeId === compute.computeId)
    .flatMap(({ createdAtMs, expiresAtMs }) => [createdAtMs, expiresAtMs]);
  const ofAge = selecting.map((index) => compute.createdAtMs + (policies.set.policies[index]?.select.minAgeMs ?? 0));
  return ascending([
    ...[...held, ...ofAge, ...flipsOfAll(policies, subject)],
    ...[...stepInstants(policies, compute), ...waveStarts(policies, compute)],
  ]);
}

function companyOf(
  { set, budgetSteps, readyWaves }: CompiledPolicies,
  selecting: readonly number[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Company {
  const ofThem = compilePolicies({ ...set, policies: set.policies.filter((_, index) => selecting.includes(index)) });
  const policies = withReadyWaves(withBudgetSteps(ofThem, budgetSteps), readyWaves);
  const changes = [...policies.set.policies.keys()].flatMap((index) => changesOf(policies, index, { fromMs, toMs }));
  return { policies, instants: ascending([fromMs, ...changes]), alike: [] };
}

function changesOf(policies: CompiledPolicies, index: number, { fromMs, toMs }: { fromMs: number; toMs: number }) {
  const changes: number[] = [];
  let instantMs = policies.nextChangeAfter(index, fromMs);
  while (instantMs !== undefined && instantMs < toMs) {
    changes.push(instantMs);
    instantMs = policies.nextChangeAfter(index, instantMs);
  }
  return changes;
}

function ascending(instants: readonly number[]): number[] {
  return [...new Set(instants)].sort((a, b) => a - b);
}
