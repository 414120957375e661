import { createHash } from 'node:crypto';
import { getOrAdd } from '../grouping.ts';
import { ascending } from '../sorted.ts';
import { trialSpan } from '../trial/assignment.ts';
import { policiesOfKind, ruleOf } from './kinds/kinds.ts';
import type { ConnectionSource, Policy, PolicySet } from './policy.ts';

/**
 * Builds a policy set: sorts the policies by file and computes the hash. The hash of a team's part includes the team, so that an approval of one
 * team's empty part does not approve the empty part of another team.
 */
export function policySet(
  policies: readonly Policy[],
  sources: ReadonlyMap<string, ConnectionSource>,
  team = '',
): PolicySet {
  const ordered = policies.toSorted((a, b) => comparePaths(a.file, b.file));
  const hash = hashPolicies(ordered, sources);
  return { policies: ordered, sources, hash: team === '' ? hash : digest(joinAsList([JSON.stringify(team), hash])) };
}

/** Compares paths by their bytes, independent of the locale: this is the order of policies. */
export function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Hashes the content of policies and sources. File names, formatting and the order of sources don't matter; the order of policies does. */
function hashPolicies(policies: readonly Policy[], sources: ReadonlyMap<string, ConnectionSource>): string {
  const content = joinAsList(policies.map(canonicalTerms));
  if (sources.size === 0) return digest(content);
  const sourceContents = [...sources]
    .sort(([a], [b]) => ascending(a, b))
    .map(([, { file: _file, ...source }]) => source);
  return digest(joinAsList([content, joinAsList(sourceContents.map(canonical))]));
}

const digestsOfDays = new WeakMap<readonly number[], string>();

/** Canonical JSON with sorted keys. Long lists of calendar days are replaced by a cached hash. */
export function canonical(value: unknown): string {
  if (isDays(value)) return JSON.stringify(digestOfDays(value));
  if (Array.isArray(value)) return joinAsList(value.map(canonical));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  const parts = keys.map((key) => {
    const part: unknown = Reflect.get(value, key);
    return part === undefined ? '' : `${JSON.stringify(key)}:${canonical(part)},`;
  });
  return `{${parts.join('')}}`;
}

function joinAsList(parts: readonly string[]): string {
  return `[${parts.join()}]`;
}

function isDays(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 7 && value.every((part) => typeof part === 'number');
}

function digestOfDays(days: readonly number[]): string {
  return getOrAdd(digestsOfDays, days, () => digest(days.join()));
}

const canonicals = new WeakMap<Policy, string>();

/** The terms of a policy, wherever its file is. Cached, since the parts of a set are hashed again whenever one of them changes. */
function canonicalTerms(policy: Policy): string {
  return getOrAdd(canonicals, policy, () => {
    const { file: _file, ...terms } = policy;
    return canonical(terms);
  });
}

const digestsOfTerms = new WeakMap<Policy, string>();

/** Identifies the terms of a policy, wherever its file is. */
export function termsDigest(policy: Policy): string {
  return getOrAdd(digestsOfTerms, policy, () => digest(canonicalTerms(policy)));
}

/** SHA-256, in hexadecimal digits. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Lists what the next policy set removes or may weaken, one line each: policies that are gone or only observe now, policies with fewer
 * times, and changed freezes, guards and hard limits. A half-edited file can look like this.
 */
export function removedProtections(before: readonly Policy[], after: readonly Policy[]): string[] {
  const afterByName = new Map(after.map((policy) => [policy.name, policy]));
  return before.flatMap((policy) => {
    const next = afterByName.get(policy.name);
    if (!next || next.kind !== policy.kind) return [`${nounOf(policy)} ${policy.name} is gone`];
    if (policy.mode === 'enforce' && next.mode === 'observe') return [`${nounOf(policy)} ${policy.name} only observes`];
    if (ruleOf(policy).protectionNoun(policy) && termsDigest(next) !== termsDigest(policy))
      return [`${nounOf(policy)} ${policy.name} was changed`];
    return countTimes(next) < countTimes(policy) ? [`a window of ${policy.name} is gone`] : [];
  });
}

function nounOf(policy: Policy): string {
  return ruleOf(policy).protectionNoun(policy) ?? 'policy';
}

function countTimes(policy: Policy): number {
  return ruleOf(policy).times(policy).length;
}

/**
 * Lists trials that have begun at `nowMs` (milliseconds since the epoch) and have different terms in the next policy set, which would
 * make their measurements useless. One line each.
 */
export function changedTrials(before: readonly Policy[], after: readonly Policy[], nowMs: number): string[] {
  const trialsAfter = policiesOfKind(after, 'trial');
  return policiesOfKind(before, 'trial').flatMap((policy) => {
    const next = trialsAfter.find(({ name }) => name === policy.name);
    if (next === undefined || next.digest === policy.digest) return [];
    if (nowMs < trialSpan(policy.design).fromMs) return [];
    const fixed = 'seed, control, unit, rotate, from, zone and of cannot be changed any more';
    return [`trial ${next.name} has begun, so ${fixed}: give the new one another name`];
  });
}
