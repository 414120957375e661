import { didYouMean } from '../common/names.ts';
import { policiesOfKind, ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { TrialPolicy } from '../domain/policy/kinds/trial.ts';
import type { Policy, PolicySet } from '../domain/policy/policy.ts';
import { comparePaths, policySet } from '../domain/policy/policy-set.ts';
import { icalReader, type ReadReferenced } from './calendars/read-calendar.ts';
import { POLICY_LIMITS, whySetTooCostly } from './limits.ts';
import { type ParsedFile, parsePolicyFile } from './parse-file.ts';
import type { PolicyProblem } from './problem.ts';
import type { WrittenPolicy } from './reader.ts';
import {
  gatherSources,
  type KnownSources,
  NO_SOURCES,
  refusedSources,
  sourceName,
  unusableSources,
} from './sources.ts';
import type { Team } from './teams.ts';
import { type ReceiverNames, unknownReceivers } from './to-domain.ts';

/** A policy file whose text has been read. */
export interface PolicyFileText {
  path: string;
  text: string;
  /** The team that it belongs to. */
  team?: Team;
}

export type PolicySetResult =
  | { ok: true; set: PolicySet; warnings: PolicyProblem[]; written: readonly WrittenPolicy[] }
  | {
      ok: false;
      problems: PolicyProblem[];
      /** Present if all problems are in the files of teams: the set without them. */
      others?: { set: PolicySet; warnings: PolicyProblem[]; written: readonly WrittenPolicy[] };
    };

interface ParseOptions {
  /** Reads the iCalendar files that policy files name; without it there are none. */
  readReferenced?: ReadReferenced;
  /** The settings' sources; without them policy files define all of them, and reach nothing. */
  knownSources?: KnownSources;
  /** The receivers that policies may name; without them nobody. */
  receivers?: ReceiverNames;
  /** Problems of files that could not be read. */
  unread?: readonly PolicyProblem[];
}

/** The files of one team, or those of no team. */
interface Part {
  team: string | undefined;
  policies: readonly Policy[];
  sources: PolicySet['sources'];
  written: readonly WrittenPolicy[];
  problems: readonly PolicyProblem[];
  warnings: readonly PolicyProblem[];
}

/**
 * Parses a set of policy files, in byte order of their paths. All or nothing: with a single problem in a single file there is no set, and
 * all problems of all files are reported at once. The files of different teams are independent: names may be the same, and each team may
 * write as much as a set may have.
 */
export function parsePolicyFiles(files: readonly PolicyFileText[], options: ParseOptions = {}): PolicySetResult {
  const { knownSources = NO_SOURCES, unread = [] } = options;
  const common = parsePart(
    files.filter(({ team }) => team === undefined),
    { ...options, knownSources },
  );
  const ofTeams = new Set(files.flatMap(({ team }) => team ?? []));
  const parts = [...ofTeams].map((one) =>
    parsePart(
      files.filter(({ team }) => team === one),
      { ...options, knownSources: { ...knownSources, sources: common.sources } },
    ),
  );
  const all = [common, ...parts];
  const problems = [...unread, ...all.flatMap((part) => part.problems).sort(byPlace)];
  if (problems.length === 0) return { ok: true, ...whole(all) };
  const broken = new Set(problems.map(({ team }) => team));
  if (broken.has(undefined)) return { ok: false, problems };
  return { ok: false, problems, others: whole(all.filter(({ team }) => !broken.has(team))) };
}

function whole(parts: readonly Part[]) {
  const set = policySet(
    parts.flatMap(({ policies }) => policies),
    new Map(parts.flatMap(({ sources }) => [...sources])),
  );
  const warnings = parts.flatMap((part) => part.warnings).sort(byPlace);
  return { set, warnings, written: parts.flatMap(({ written }) => written) };
}

function parsePart(files: readonly PolicyFileText[], options: ParseOptions & { knownSources: KnownSources }): Part {
  const { readReferenced = readsNothing, knownSources, receivers = [] } = options;
  const readIcal = icalReader(readReferenced);
  const parsed = files
    .toSorted((a, b) => comparePaths(a.path, b.path))
    .map(({ path, text, team }) => parsePolicyFile(path, text, { readReferenced, readIcal, team }));
  const written = parsed.flatMap((file) => file.written);
  const gathered = gatherSources(
    parsed.flatMap((file) => file.sources ?? []),
    knownSources,
  );
  const { sources } = gathered;
  const policies = parsed.flatMap((file) => file.policies);
  const ofFiles = parsed.flatMap((file) => file.problems);
  const problems = [
    ...ofFiles,
    ...gathered.problems,
    // What others name may stand where it can't be read.
    ...(parsed.every((file) => file.sources) ? unusableSources(written, sources) : []),
    ...(ofFiles.length > 0 ? [] : trialProblems(policies, written)),
    ...unknownReceivers(written, receivers),
    ...budgetProblems(policies, written),
    ...duplicateNames(parsed),
    ...tooMuch(parsed),
  ];
  const team = files[0]?.team?.name;
  return {
    team,
    policies: policies.map((policy) => {
      if ('connections' in policy) return { ...policy, connections: sourceName(sources, team, policy.connections) };
      return 'source' in policy ? { ...policy, source: sourceName(sources, team, policy.source) } : policy;
    }),
    sources,
    written,
    problems: team === undefined ? problems : problems.map((problem) => ({ ...problem, team })),
    warnings: [...parsed.flatMap((file) => file.warnings), ...refusedSources(written, sources)],
  };
}

function readsNothing(): ReturnType<ReadReferenced> {
  return { ok: false, message: 'no such file' };
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

/** Problems of trials that only show over all policies together, or over the selection of a group. */
function trialProblems(policies: readonly Policy[], written: readonly WrittenPolicy[]): PolicyProblem[] {
  return policiesOfKind(policies, 'trial').flatMap((policy) => {
    const place = written.find(({ name }) => name === policy.name);
    if (!place) return [];
    const { at, problemAt } = place;
    const ofNames = policy.of.flatMap((_, index) => {
      const message = whyNotWithdrawn(policy, index, policies, written);
      return message === undefined ? [] : [problemAt([...at, 'of', index], 'value', message)];
    });
    const selector = badSelector(policy);
    return selector === undefined ? ofNames : [...ofNames, problemAt([...at, 'select'], 'value', selector)];
  });
}

function whyNotWithdrawn(
  { of }: TrialPolicy,
  index: number,
  policies: readonly Policy[],
  written: readonly WrittenPolicy[],
): string | undefined {
  const name = of[index] ?? '';
  if (of.indexOf(name) < index) return `"${name}" is named twice; leave one out`;
  const found = policies.find((policy) => policy.name === name);
  if (!found && written.some((policy) => policy.name === name)) return `"${name}" is not enabled; leave it out`;
  const names = policies.filter((policy) => ruleOf(policy).owns).map((policy) => policy.name);
  if (!found)
    return `no policy is named "${name}"${didYouMean(name, names) || `; there are ${names.slice(0, 20).join(', ')}`}`;
  const notWithdrawable = ruleOf(found).notWithdrawable(found);
  if (notWithdrawable !== undefined) return notWithdrawable;
  if (found.mode === 'observe')
    return `"${name}" only observes, so it can't be withdrawn; leave it out or let it enforce`;
  return undefined;
}

/** Usage is measured by project or branch: a trial of a part of one could not be told from the rest. */
function badSelector({ unit, select }: TrialPolicy): string | undefined {
  const { computes, types, share, branches, branchRoles } = select;
  const ofBranches = unit === 'project' ? { branches, branch_roles: branchRoles } : {};
  const given = Object.entries({ computes, types, share, ...ofBranches }).filter(([, value]) => value !== undefined);
  if (given.length === 0) return undefined;
  const what = unit === 'project' ? 'whole projects' : 'whole branches';
  return `a trial with unit: ${unit} selects ${what}; leave out ${given.map(([key]) => key).join(', ')}`;
}

/** Usage is measured by project and branch: the spending of a part of one is unknown. */
function budgetProblems(policies: readonly Policy[], written: readonly WrittenPolicy[]): PolicyProblem[] {
  return policiesOfKind(policies, 'budget').flatMap((policy) => {
    const place = written.find(({ name }) => name === policy.name);
    if (!place) return [];
    const { computes, types, share, regions } = policy.select;
    const given = Object.entries({ computes, types, share, regions }).filter(([, value]) => value !== undefined);
    if (given.length === 0) return [];
    const keys = given.map(([key]) => key).join(', ');
    const message = `a budget selects by accounts, projects, branches and branch_roles, which are measured; leave out ${keys}`;
    return [place.problemAt([...place.at, 'select'], 'value', message)];
  });
}
