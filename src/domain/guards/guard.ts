/** A guard: a query, and when its answers are bad. The answers come from a source that is not trusted. */

import type { ComputeIdentity } from '../compute/compute.ts';

/** The condition for a bad value. */
export interface BadWhen {
  /** The side of the limit on which values are bad. */
  side: 'above' | 'below';
  /** With `relative`, a factor of the compute's earlier values. */
  limit: number;
  relative: boolean;
}

/** Assigns series to computes. For each label: its value, which may contain placeholders, or a map from its values to projects. */
export type Match = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

export interface GuardTerms {
  source: string;
  /** A query for all computes at once. */
  query: string;
  /** True if the query is about an alert: of several series of a compute, the worst counts. */
  isAlert: boolean;
  match: Match;
  badWhen: BadWhen;
  /** The state of a compute without a value. */
  noData: 'unknown' | 'healthy';
}

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

export function withoutPlaceholders(text: string): string {
  return text.replaceAll(PLACEHOLDER, '');
}

/** The keys of the series that belong to a compute; none while the value of a placeholder is unknown. */
export function keysFor(match: Match, compute: ComputeIdentity): string[] {
  let keys: string[][] = [[]];
  for (const rule of Object.values(match)) {
    const values = wantedValues(rule, compute);
    keys = keys.flatMap((key) => values.map((value) => [...key, value]));
  }
  return keys.map((key) => JSON.stringify(key));
}

/** The key of a series; see {@link keysFor}. */
export function keyOf(match: Match, labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.keys(match).map((label) => labels[label] ?? ''));
}

/** The values of a label that stand for the compute; never an empty text, which means that the label is absent. */
function wantedValues(rule: Match[string], compute: ComputeIdentity): string[] {
  const { projectId, projectName } = compute;
  if (typeof rule === 'string') return [filledIn(rule, compute) ?? ''].filter((value) => value !== '');
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
