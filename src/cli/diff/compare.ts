import type { Compute } from '../../domain/compute/compute.ts';
import type { Estimate, Range } from '../../domain/estimate.ts';
import { type Difference, differencesOf } from '../../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { unloadedTeams } from '../../domain/policy/team-parts.ts';
import type { ReadyWaves } from '../../domain/policy/waves.ts';
import type { Finding } from '../../domain/recommend/finding.ts';
import type { Span } from '../../domain/time/span.ts';
import { limitingLines } from '../forecast/budget-steps.ts';
import { type MonthChange, monthChange, sumExpected } from '../forecast/month.ts';
import { hoursWithEbb, type Outlook } from '../forecast/outlook.ts';
import type { NotPlanned } from '../not-planned.ts';
import { sumOf, times } from '../ranges.ts';

export interface ComputeChange {
  compute: Compute;
  differences: readonly Difference[];
  before: Outlook;
  after: Outlook;
}

export interface Comparison {
  /** Only computes that differ. */
  changes: ComputeChange[];
  /** The number of computes compared. */
  computes: number;
  /** CU-hours of all computes. */
  hours: { before: Range; after: Range };
  /** US dollars of the computes with a price; absent if none has. */
  dollars?: { before: Range; after: Range };
  /** The monthly saving of the change; absent without usage. */
  month?: MonthChange;
  /** Expected CU-hours of the computes with usage data. */
  expected: { before: Estimate | null; after: Estimate | null };
  policies: PolicyNames;
  /** A line for each step of a budget that limits under the new policies. */
  limiting: readonly string[];
  readyWaves: { before: readonly ReadyWaves[]; after: readonly ReadyWaves[] };
  /** The findings of `ebb recommend` that these changes follow; absent if nobody asked for them. */
  findings?: readonly Finding[];
  /** Computes that are left out, since their policies can't be read on one side. */
  notPlanned?: readonly NotPlanned[];
}

export interface PolicyNames {
  added: string[];
  removed: string[];
  /** Policies with the same name and another meaning. */
  changed: string[];
}

/** The old or the new policies, and the forecasts under them. */
interface Side {
  policies: Pick<CompiledPolicies, 'set' | 'budgetSteps' | 'readyWaves'>;
  outlooks: readonly Outlook[];
}

/** Compares two forecasts of the same computes, in the same order. */
export function compare(
  { policies: oldPolicies, outlooks: before }: Side,
  { policies: newPolicies, outlooks: after }: Side,
  span: Span,
): Comparison {
  const changes = before.flatMap((was, index): ComputeChange[] => {
    const changed = after[index];
    if (!changed) return [];
    const differences = differencesOf(was.segments, changed.segments);
    return differences.length > 0 ? [{ compute: was.compute, differences, before: was, after: changed }] : [];
  });
  const dollarsOf = (outlooks: readonly Outlook[]) =>
    sumOf(outlooks, ({ cuHours, price = 0 }) => times(cuHours, price));
  const month = monthChange(before, after);
  const expectedOf = (outlooks: readonly Outlook[]) => sumExpected(outlooks)?.cuHours ?? null;
  const isPriced = before.some(({ price }) => price !== undefined);
  return {
    changes,
    computes: before.length,
    hours: { before: sumOf(before, hoursWithEbb), after: sumOf(after, hoursWithEbb) },
    ...(month && { month }),
    expected: { before: expectedOf(before), after: expectedOf(after) },
    ...(isPriced && { dollars: { before: dollarsOf(before), after: dollarsOf(after) } }),
    policies: comparePolicies(oldPolicies.set, newPolicies.set),
    limiting: limitingLines(newPolicies.budgetSteps, newPolicies.set, span),
    readyWaves: { before: oldPolicies.readyWaves, after: newPolicies.readyWaves },
  };
}

/** Compares policies by name; their places in the files don't matter. Policies of a team that can't be read on one side are left out. */
function comparePolicies(before: PolicySet, after: PolicySet): PolicyNames {
  const unread = new Set([before, after].flatMap(unloadedTeams));
  const isRead = ({ team }: Policy) => team === undefined || !unread.has(team);
  const old = meanings(before.policies.filter(isRead));
  const now = meanings(after.policies.filter(isRead));
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now].flatMap(([name, meaning]) => (old.has(name) && old.get(name) !== meaning ? [name] : [])),
  };
}

function meanings(policies: readonly Policy[]): Map<string, string> {
  return new Map(policies.map(({ file: _, ...policy }) => [policy.name, JSON.stringify(policy)]));
}
