/** A guard: what it asks, and which answers are bad. Its answers come from a source that is not trusted. */

import type { ComputeIdentity } from '../compute/compute.ts';

/** Which values are bad. */
export interface BadWhen {
  /** Bad above the limit, or below it. */
  side: 'above' | 'below';
  /** The limit; with `relative` a factor of what the compute had before. */
  limit: number;
  relative: boolean;
}

/** Which series belong to a compute: a label, and its value with placeholders; or the project of each value of the label. */
export type Match = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

export interface GuardTerms {
  /** Name of the Prometheus source. */
  source: string;
  /** A query for all computes at once. */
  query: string;
  /** True if the query is about an alert: several series of a compute are then one, of which the worst counts. */
  isAlert: boolean;
  match: Match;
  badWhen: BadWhen;
  /** What a compute without a value counts as. */
  noData: 'unknown' | 'healthy';
}

/** The placeholders of a match. */
export const PLACEHOLDERS = {
  project_id: ({ projectId }) => projectId,
  project_name: ({ projectName, projectNameUnknown }) => (projectNameUnknown ? undefined : projectName),
  branch_id: ({ branchId }) => branchId,
  branch_name: ({ branchName }) => branchName,
  compute_id: ({ computeId }) => computeId,
} as const satisfies Record<string, (compute: ComputeIdentity) => string | undefined>;

const PLACEHOLDER = /\{([^{}]*)\}/g;

/** The names between braces in a text. */
export function placeholdersIn(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}

/** The keys of the series that belong to a compute; none while a placeholder's value is not known. */
export function keysFor(match: Match, compute: ComputeIdentity): string[] {
  const wanted = Object.values(match).map((rule) => wantedValues(rule, compute));
  const keys = wanted.reduce<string[][]>(
    (before, values) => before.flatMap((one) => values.map((value) => [...one, value])),
    [[]],
  );
  return keys.map((values) => JSON.stringify(values));
}

/** The key of a series, which is that of the computes that it belongs to. */
export function keyOf(match: Match, labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.keys(match).map((label) => labels[label] ?? ''));
}

/** The values of a label that stand for the compute; never an empty text, which is how an absent label reads. */
function wantedValues(rule: Match[string], compute: ComputeIdentity): string[] {
  const { projectId, projectName } = compute;
  if (typeof rule === 'string') return [filledIn(rule, compute) ?? []].flat().filter(Boolean);
  return Object.keys(rule).filter((value) => value !== '' && [projectId, projectName].includes(rule[value] ?? ''));
}

function filledIn(text: string, compute: ComputeIdentity): string | undefined {
  let isKnown = true;
  const filled = text.replaceAll(PLACEHOLDER, (whole, name: string) => {
    const value = PLACEHOLDERS[name as keyof typeof PLACEHOLDERS]?.(compute);
    if (value === undefined) isKnown = false;
    return value ?? whole;
  });
  return isKnown ? filled : undefined;
}
