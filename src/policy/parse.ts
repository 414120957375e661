import { createHash } from 'node:crypto';
import type { ConnectionSource, Policy, PolicySet } from '../domain/policy/policy.ts';
import { ascending } from '../domain/sorted.ts';
import { icalReader, type ReadReferenced } from './calendars/read-calendar.ts';
import { POLICY_LIMITS } from './limits.ts';
import { type ParsedFile, parsePolicyFile } from './parse-file.ts';
import type { PolicyProblem } from './problem.ts';
import type { WrittenPolicy } from './reader.ts';
import { whySetTooCostly } from './set-cost.ts';
import { gatherSources, type KnownSources, NO_SOURCES, refusedSources, unknownSources } from './sources.ts';
import { trialProblems } from './trials.ts';

/** A policy file whose text has been read. */
export interface PolicyFileText {
  path: string;
  text: string;
}

export type PolicySetResult =
  | { ok: true; set: PolicySet; warnings: PolicyProblem[]; written: readonly WrittenPolicy[] }
  | { ok: false; problems: PolicyProblem[] };

interface ParseOptions {
  /** How iCalendar files are read that policy files name; without it there are none. */
  readReferenced?: ReadReferenced;
  /** What the settings say of sources; without it policy files define all of them, and reach nothing. */
  knownSources?: KnownSources;
}

/**
 * Reads a set of policy files, in byte order of their paths. All or nothing: with a single problem in a single file there
 * is no set, and all problems of all files are reported at once.
 */
export function parsePolicyFiles(files: readonly PolicyFileText[], options: ParseOptions = {}): PolicySetResult {
  const { readReferenced = readsNothing, knownSources = NO_SOURCES } = options;
  const readIcal = icalReader(readReferenced);
  const parsed = files
    .toSorted((a, b) => comparePaths(a.path, b.path))
    .map((file) => parsePolicyFile(file.path, file.text, { readReferenced, readIcal }));
  const written = parsed.flatMap((file) => file.written);
  const gathered = gatherSources(
    parsed.flatMap((file) => file.sources),
    knownSources,
  );
  const { sources } = gathered;
  const ofFiles = parsed.flatMap((file) => file.problems);
  // In a file with other problems a source may be missing from what was understood.
  const policies = parsed.flatMap((file) => file.policies);
  const ofSet = () => [...gathered.problems, ...unknownSources(written, sources), ...trialProblems(policies, written)];
  const ofNames = ofFiles.length > 0 ? [] : ofSet();
  const problems = [...ofFiles, ...ofNames, ...duplicateNames(parsed), ...tooMuch(parsed)];
  if (problems.length > 0) return { ok: false, problems: problems.sort(byPlace) };
  const set: PolicySet = { policies, sources, hash: hashPolicies(policies, sources) };
  const warnings = [...parsed.flatMap((file) => file.warnings), ...refusedSources(written, sources)];
  return { ok: true, set, warnings: warnings.sort(byPlace), written };
}

function readsNothing(): ReturnType<ReadReferenced> {
  return { ok: false, message: 'no such file' };
}

/** The order of the language: by the bytes of the paths, whatever the locale. */
function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

type Place = Pick<PolicyProblem, 'file' | 'line' | 'column'>;

/** Problems in the order in which a person reads files. */
export function byPlace(a: Place, b: Place): number {
  return comparePaths(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

function duplicateNames(files: readonly ParsedFile[]): PolicyProblem[] {
  const places = new Map<string, string>();
  return files
    .flatMap((file) => file.written)
    .flatMap(({ name, at, problemAt }) => {
      const first = places.get(name);
      const message = `the name "${name}" is already used at ${first}`;
      const here = problemAt([...at, 'name'], 'duplicate-name', message);
      if (first === undefined) places.set(name, `${here.file}:${here.line}`);
      return first === undefined ? [] : [here];
    });
}

function tooMuch(files: readonly ParsedFile[]): PolicyProblem[] {
  const last = files.findLast((file) => file.written.length > 0)?.written.at(-1);
  const message = whyTooMuch(files);
  return message === undefined || !last ? [] : [last.problemAt([...last.at, 'name'], 'limit', message)];
}

function whyTooMuch(files: readonly ParsedFile[]): string | undefined {
  const count = files.reduce((sum, file) => sum + file.written.length, 0);
  if (count > POLICY_LIMITS.policies) return `more than ${POLICY_LIMITS.policies} policies in the set`;
  if (files.some(({ problems }) => problems.length > 0)) return undefined;
  return whySetTooCostly(files.flatMap(({ policies }) => policies));
}

/** Identifies what policies mean: where they are written, and how, does not matter; their order does, that of sources doesn't. */
function hashPolicies(policies: readonly Policy[], sources: ReadonlyMap<string, ConnectionSource>): string {
  const meaning = listOf(policies.map(({ file: _file, ...policy }) => canonical(policy)));
  if (sources.size === 0) return digest(meaning);
  const counted = [...sources].sort(([a], [b]) => ascending(a, b)).map(([, { file: _file, ...source }]) => source);
  return digest(listOf([meaning, listOf(counted.map(canonical))]));
}

const knownDigests = new WeakMap<readonly number[], string>();

/** JSON with keys in one order. The days of a calendar, hundreds for each window that names it, are hashed once for all. */
function canonical(value: unknown): string {
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

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
