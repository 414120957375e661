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

export interface PolicyFileText {
  path: string;
  text: string;
  team?: Team | undefined;
}

export interface ParsedSet {
  set: PolicySet;
  warnings: PolicyProblem[];
  written: readonly WrittenPolicy[];
}

export type PolicySetResult =
  | ({ ok: true } & ParsedSet)
  | {
      ok: false;
      problems: PolicyProblem[];
      /** The set without the teams that have problems; absent if a file that belongs to no team has one. */
      others?: ParsedSet;
      /**
       * Instead of `others`, if a file that belongs to no team has a problem: the set without the teams and files that have problems. It is
       * only checked, never used. Absent if a limit is exceeded.
       */
      readable?: ReadableSet;
    };

interface ReadableSet extends ParsedSet {
  /** The owners that the files with problems name; undefined if one of these files can't be read. */
  otherOwners: readonly string[] | undefined;
}

interface ParseOptions {
  /** Reads the iCalendar files that policy files name; default: there are none. */
  readReferenced?: ReadReferenced;
  /** The sources of the settings; default: none, and sources of policy files may reach nothing. */
  knownSources?: KnownSources | undefined;
  /** The receivers that policies may name; default: none. */
  receivers?: ReceiverNames | undefined;
  /** True if the settings could not be read: they may define any source or receiver, so names of these are not checked. */
  areSettingsUnread?: boolean | undefined;
  /** Problems of files that could not be read. */
  unread?: readonly PolicyProblem[];
}

/** The files of one team, or those that belong to no team. */
interface TeamFiles {
  team: string | undefined;
  policies: readonly Policy[];
  sources: PolicySet['sources'];
  written: readonly WrittenPolicy[];
  problems: readonly PolicyProblem[];
  warnings: readonly PolicyProblem[];
}

/**
 * Parses a set of policy files, in byte order of their paths, and reports all problems of all files. With any problem there is
 * no set, but teams are independent: they may use the same names, and the limits of a set apply to each team.
 */
export function parsePolicyFiles(files: readonly PolicyFileText[], options: ParseOptions = {}): PolicySetResult {
  const { knownSources = NO_SOURCES, unread = [] } = options;
  const filesOf = (owner: Team | undefined) => files.filter(({ team }) => team === owner);
  const common = parseFiles(filesOf(undefined), knownSources, options);
  const sourcesForTeams = { ...knownSources, sources: common.sources };
  const teams = new Set(files.flatMap(({ team }) => team ?? []));
  const all = [common, ...[...teams].map((team) => parseFiles(filesOf(team), sourcesForTeams, options))];
  const problems = [...unread, ...all.flatMap((part) => part.problems).sort(byPlace)];
  if (problems.length === 0) return { ok: true, ...combine(all) };
  const broken = new Set(problems.map(({ team }) => team));
  const unbroken = all.filter(({ team }) => !broken.has(team));
  if (!broken.has(undefined)) return { ok: false, problems, others: combine(unbroken, broken) };
  if (problems.some(({ code }) => code === 'limit')) return { ok: false, problems };
  const brokenFiles = new Set(problems.map(({ file }) => file));
  const readable = combine([...unbroken, withoutFiles(common, brokenFiles)], broken);
  const otherOwners = unread.some(({ team }) => team === undefined)
    ? undefined
    : filesOf(undefined).flatMap(({ path, text }) => (brokenFiles.has(path) ? ownerIn(text) : []));
  return { ok: false, problems, readable: { ...readable, otherOwners } };
}

function withoutFiles(part: TeamFiles, broken: ReadonlySet<string>): TeamFiles {
  const isKept = ({ file }: { file: string }) => !broken.has(file);
  const [policies, written] = [part.policies.filter(isKept), part.written.filter(isKept)];
  return { ...part, policies, written, warnings: part.warnings.filter(isKept) };
}

/** The owner in a text that may not be YAML. */
function ownerIn(text: string): string[] {
  const [, owner] = /^["']?owner["']?:[ \t]+["']?([\w.@-][\w .@-]{0,99}?)["']?[ \t]*(?:#.*)?$/m.exec(text) ?? [];
  return owner === undefined ? [] : [owner];
}

/** Combines parts to one set. `broken` are the teams whose files have problems: their policies are not known. */
function combine(parts: readonly TeamFiles[], broken: ReadonlySet<string | undefined> = new Set()): ParsedSet {
  const set = policySet(
    parts.flatMap(({ policies }) => policies),
    new Map(parts.flatMap(({ sources }) => [...sources])),
  );
  const warnings = [...parts.flatMap((part) => part.warnings), ...wrongTeamNames(parts, broken)].sort(byPlace);
  return { set, warnings, written: parts.flatMap(({ written }) => written) };
}

const NO_REFERENCED_FILES: ReadReferenced = () => ({ ok: false, message: 'no such file' });

function parseFiles(files: readonly PolicyFileText[], knownSources: KnownSources, options: ParseOptions): TeamFiles {
  const { readReferenced = NO_REFERENCED_FILES, receivers = [], areSettingsUnread = false } = options;
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
  const fileProblems = parsed.flatMap((file) => file.problems);
  const problems = [
    ...fileProblems,
    ...gathered.problems,
    // If sources could not be read, a missing name may be among them.
    ...(parsed.every((file) => file.sources) && !areSettingsUnread ? unusableSources(written, sources) : []),
    ...trialProblems(policies, written, { isComplete: fileProblems.length === 0 }),
    ...(areSettingsUnread ? [] : unknownReceivers(written, receivers)),
    ...budgetProblems(policies, written),
    ...duplicateNames(written),
    ...limitProblems(parsed, written),
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

type Place = Pick<PolicyProblem, 'file' | 'line' | 'column'>;

export function byPlace(a: Place, b: Place): number {
  return comparePaths(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

function duplicateNames(written: readonly WrittenPolicy[]): PolicyProblem[] {
  const places = new Map<string, string>();
  return written.flatMap(({ name, at, problemAt }) => {
    const first = places.get(name);
    const message = `the name "${name}" is already used at ${first}`;
    const here = problemAt([...at, 'name'], 'duplicate-name', message);
    if (first === undefined) places.set(name, `${here.file}:${here.line}`);
    return first === undefined ? [] : [here];
  });
}

/** The limits of a set, reported at its last policy. */
function limitProblems(files: readonly ParsedFile[], written: readonly WrittenPolicy[]): PolicyProblem[] {
  const last = written.at(-1);
  const message = exceededLimit(files, written.length);
  return message === undefined || !last ? [] : [last.problemAt([...last.at, 'name'], 'limit', message)];
}

function exceededLimit(files: readonly ParsedFile[], count: number): string | undefined {
  if (count > POLICY_LIMITS.policies) return `more than ${POLICY_LIMITS.policies} policies in the set`;
  if (files.some(({ problems }) => problems.length > 0)) return undefined;
  return whySetTooCostly(files.flatMap(({ policies }) => policies));
}

/**
 * Problems of trials with the policies in `of`, and with their selectors. An unknown name is a problem only if no policy is missing because
 * of other problems (`isComplete`). Policies of teams in trials of no team are left to {@link wrongTeamNames}.
 */
function trialProblems(
  policies: readonly Policy[],
  written: readonly WrittenPolicy[],
  { isComplete }: { isComplete: boolean },
): PolicyProblem[] {
  const isRead = (name: string) => isComplete || policies.some((policy) => policy.name === name);
  return policiesOfKind(policies, 'trial').flatMap((policy) => {
    const place = written.find(({ name }) => name === policy.name);
    if (!place) return [];
    const isChecked = (name: string) => isRead(name) && (place.team !== undefined || !name.includes('/'));
    const problems = trialNameProblems(policy, place, { policies, written, isChecked });
    const message = selectorProblem(policy);
    return message === undefined ? problems : [...problems, place.problemAt([...place.at, 'select'], 'value', message)];
  });
}

/** Wrong names of teams' policies in trials of no team. They are warnings, since a team must not break the files of all by an edit of its own. */
function wrongTeamNames(parts: readonly TeamFiles[], broken: ReadonlySet<string | undefined>): PolicyProblem[] {
  const policies = parts.flatMap((part) => part.policies);
  const written = parts.flatMap((part) => part.written);
  const isChecked = (name: string) => name.includes('/') && !broken.has(name.split('/')[0]);
  const ofNoTeam = parts.filter(({ team }) => team === undefined).flatMap((part) => part.written);
  return policiesOfKind(policies, 'trial').flatMap((policy) => {
    const place = ofNoTeam.find(({ name }) => name === policy.name);
    return place ? trialNameProblems(policy, place, { policies, written, isChecked }) : [];
  });
}

/** A problem for each name in `of` that `isChecked` accepts and the trial can't withdraw. */
function trialNameProblems(
  policy: TrialPolicy,
  { at, problemAt }: WrittenPolicy,
  set: { policies: readonly Policy[]; written: readonly WrittenPolicy[]; isChecked(name: string): boolean },
): PolicyProblem[] {
  return policy.of.flatMap((name, index) => {
    const message = set.isChecked(name) ? whyNotWithdrawable(policy, index, set.policies, set.written) : undefined;
    return message === undefined ? [] : [problemAt([...at, 'of', index], 'value', message)];
  });
}

function whyNotWithdrawable(
  { of }: TrialPolicy,
  index: number,
  policies: readonly Policy[],
  written: readonly WrittenPolicy[],
): string | undefined {
  const name = of[index] ?? '';
  if (of.indexOf(name) < index) return `"${name}" is named twice; leave one out`;
  const found = policies.find((policy) => policy.name === name);
  if (!found && written.some((policy) => policy.name === name)) return `"${name}" is not enabled; leave it out`;
  if (!found) {
    const names = policies.filter((policy) => ruleOf(policy).owns).map((policy) => policy.name);
    const others =
      names.length === 0 ? 'there is none that sets anything' : `there are ${names.slice(0, 20).join(', ')}`;
    return `no policy is named "${name}"${didYouMean(name, names) || `; ${others}`}`;
  }
  const notWithdrawable = ruleOf(found).notWithdrawable(found);
  if (notWithdrawable !== undefined) return notWithdrawable;
  if (found.mode === 'observe')
    return `"${name}" only observes, so it can't be withdrawn; leave it out or let it enforce`;
  return undefined;
}

/** Usage is measured by project or branch, so a trial can't select a part of one. */
function selectorProblem({ unit, select }: TrialPolicy): string | undefined {
  const { computes, types, share, branches, branchRoles } = select;
  const branchKeys = unit === 'project' ? { branches, branch_roles: branchRoles } : {};
  const keys = definedKeys({ computes, types, share, ...branchKeys });
  if (keys === '') return undefined;
  const units = unit === 'project' ? 'projects' : 'branches';
  return `a trial with unit: ${unit} selects whole ${units}; leave out ${keys}`;
}

/** The keys with a value, as text; empty if there are none. */
function definedKeys(values: object): string {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return entries.map(([key]) => key).join(', ');
}

/** Usage is measured by project and branch, so a budget can't select a part of one. */
function budgetProblems(policies: readonly Policy[], written: readonly WrittenPolicy[]): PolicyProblem[] {
  return policiesOfKind(policies, 'budget').flatMap((policy) => {
    const place = written.find(({ name }) => name === policy.name);
    if (!place) return [];
    const { computes, types, share, regions } = policy.select;
    const keys = definedKeys({ computes, types, share, regions });
    if (keys === '') return [];
    const message = `a budget selects by accounts, projects, branches and branch_roles, which are measured; leave out ${keys}`;
    return [place.problemAt([...place.at, 'select'], 'value', message)];
  });
}
