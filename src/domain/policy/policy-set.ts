import { createHash } from 'node:crypto';
import { ascending } from '../sorted.ts';
import { trialSpan } from '../trial/assignment.ts';
import { asKind, policiesOfKind, ruleOf } from './kinds/kinds.ts';
import type { ConnectionSource, Policy, PolicySet } from './policy.ts';

/**
 * A set of policies, put in the order of the language, and the sources that they name. The part of a team has the team in its hash:
 * the empty parts of two teams are not the same, and one is not approved with the other.
 */
export function policySet(
  policies: readonly Policy[],
  sources: ReadonlyMap<string, ConnectionSource>,
  team = '',
): PolicySet {
  const ordered = policies.toSorted((a, b) => comparePaths(a.file, b.file));
  const hash = hashPolicies(ordered, sources);
  return { policies: ordered, sources, hash: team === '' ? hash : digest(listOf([JSON.stringify(team), hash])) };
}

/** The order of the language: by the bytes of the paths, whatever the locale. */
export function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Identifies the meaning of policies: their place and form in the files don't matter; their order does, that of sources doesn't. */
function hashPolicies(policies: readonly Policy[], sources: ReadonlyMap<string, ConnectionSource>): string {
  const meaning = listOf(policies.map(({ file: _file, ...policy }) => canonical(policy)));
  if (sources.size === 0) return digest(meaning);
  const counted = [...sources].sort(([a], [b]) => ascending(a, b)).map(([, { file: _file, ...source }]) => source);
  return digest(listOf([meaning, listOf(counted.map(canonical))]));
}

const knownDigests = new WeakMap<readonly number[], string>();

/** JSON with keys in one order. The days of a calendar, hundreds for each window that names it, are hashed once for all. */
export function canonical(value: unknown): string {
  if (isDays(value)) return JSON.stringify(digestOfDays(value));
  if (Array.isArray(value)) return listOf(value.map(canonical));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  const parts = keys.map((key) => {
    const part: unknown = Reflect.get(value, key);
    return part === undefined ? '' : `${JSON.stringify(key)}:${canonical(part)},`;
  });
  return `{${parts.join('')}}`;
}

function listOf(parts: readonly string[]): string {
  return `[${parts.join()}]`;
}

function isDays(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 7 && value.every((part) => typeof part === 'number');
}

function digestOfDays(days: readonly number[]): string {
  const known = knownDigests.get(days) ?? digest(days.join());
  knownDigests.set(days, known);
  return known;
}

/** SHA-256, in hexadecimal digits. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Protections of the first policy set that the next one lacks or changes: policies that are gone or only observe, policies with fewer
 * times, and different freezes and hard limits. One entry for each, for people. A file that somebody is still writing looks like this.
 */
export function vanishedBetween(before: readonly Policy[], after: readonly Policy[]): string[] {
  const left = new Map(after.map((policy) => [policy.name, policy]));
  return before.flatMap((policy) => {
    const now = left.get(policy.name);
    if (!now || now.kind !== policy.kind) return [`${nounOf(policy)} ${policy.name} is gone`];
    if (policy.mode === 'enforce' && now.mode === 'observe') return [`${nounOf(policy)} ${policy.name} only observes`];
    if (ruleOf(policy).guard(policy) && meaningOf(now) !== meaningOf(policy))
      return [`${nounOf(policy)} ${policy.name} is another`];
    return timesOf(now) < timesOf(policy) ? [`a window of ${policy.name} is gone`] : [];
  });
}

function nounOf(policy: Policy): string {
  return ruleOf(policy).guard(policy) ?? 'policy';
}

function meaningOf({ file: _file, ...policy }: Policy): string {
  return JSON.stringify(policy);
}

function timesOf(policy: Policy): number {
  return ruleOf(policy).times(policy).length;
}

/**
 * Trials that have begun, at `nowMs` (milliseconds since the epoch), and have other terms in the next policy set: their measurements would
 * say nothing about the time after. One line for each, with its file.
 */
export function changedTrials(before: readonly Policy[], after: readonly Policy[], nowMs: number): string[] {
  return policiesOfKind(before, 'trial').flatMap((policy) => {
    const next = asKind(
      after.find(({ name }) => name === policy.name),
      'trial',
    );
    if (next === undefined || next.digest === policy.digest) return [];
    if (nowMs < trialSpan(policy.design).fromMs) return [];
    const what = 'seed, control, unit, rotate, from, zone and of can not be changed any more';
    return [`${next.file}: trial ${next.name} has begun, so ${what}: give the new one another name`];
  });
}
