import type { Policy, PolicySet } from '../domain/policy.ts';
import type { AnyPolicy } from '../domain/policy-kinds.ts';
import { RULES } from '../domain/rules/rules.ts';
import type { ReadReferenced } from './calendars/read-calendar.ts';
import { POLICY_LIMITS } from './limits.ts';
import { type ParsedFile, parsePolicyFile } from './parse-file.ts';
import type { PolicyProblem } from './problem.ts';
import { hashPolicies } from './set-hash.ts';
import { UNSUPPORTED, type Unsupported } from './unsupported.ts';

/** A policy file whose text has been read. */
export interface PolicyFileText {
  path: string;
  text: string;
}

export type PolicySetResult =
  | { ok: true; set: PolicySet; warnings: PolicyProblem[] }
  | { ok: false; problems: PolicyProblem[] };

export interface ParseOptions {
  /** How iCalendar files are read that policy files name; without it there are none. */
  readReferenced?: ReadReferenced;
  /** What enabled policies may not use; {@link UNSUPPORTED} if absent. */
  unsupported?: readonly Unsupported[];
}

/**
 * Reads a set of policy files, in byte order of their paths. All or nothing: with a single problem in a single file there
 * is no set, and all problems of all files are reported at once.
 */
export function parsePolicyFiles(files: readonly PolicyFileText[], options: ParseOptions = {}): PolicySetResult {
  const { readReferenced = readsNothing, unsupported = UNSUPPORTED } = options;
  const parsed = files
    .toSorted((a, b) => comparePaths(a.path, b.path))
    .map((file) => parsePolicyFile(file.path, file.text, { readReferenced, unsupported }));
  const problems = [...parsed.flatMap((file) => file.problems), ...duplicateNames(parsed), ...tooManyPolicies(parsed)];
  if (problems.length > 0) return { ok: false, problems: problems.sort(byPlace) };
  const policies = parsed.flatMap((file) => file.policies).filter(isSupported);
  const set: PolicySet = { policies, hash: hashPolicies(policies) };
  return { ok: true, set, warnings: parsed.flatMap((file) => file.warnings) };
}

/** Kinds without a rule are problems where they are enabled: see UNSUPPORTED. */
function isSupported(policy: AnyPolicy): policy is Policy {
  return Object.hasOwn(RULES, policy.kind);
}

function readsNothing(): ReturnType<ReadReferenced> {
  return { ok: false, message: 'no such file' };
}

/** The order of the language: by the bytes of the paths, whatever the locale. */
export function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function byPlace(a: PolicyProblem, b: PolicyProblem): number {
  return comparePaths(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

function duplicateNames(files: readonly ParsedFile[]): PolicyProblem[] {
  const places = new Map<string, string>();
  return files
    .flatMap((file) => file.names)
    .flatMap(({ name, problem }) => {
      const first = places.get(name);
      const here = problem('duplicate-name', `the name "${name}" is already used at ${first}`);
      if (first === undefined) places.set(name, `${here.file}:${here.line}`);
      return first === undefined ? [] : [here];
    });
}

function tooManyPolicies(files: readonly ParsedFile[]): PolicyProblem[] {
  const count = files.reduce((sum, file) => sum + file.names.length, 0);
  const last = files.findLast((file) => file.names.length > 0)?.names.at(-1);
  if (count <= POLICY_LIMITS.policies || !last) return [];
  return [last.problem('limit', `more than ${POLICY_LIMITS.policies} policies in the set`)];
}
