import { refusedBranchNotes } from '../../app/fleet/branches.ts';
import { narrowKeys } from '../../app/fleet/inventory.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { AT_ANY_AGE, compileSelector, type Selection } from '../../domain/policy/select.ts';
import { type Finding, lintPolicySet } from '../../policy/lint/lint.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { misspeltOwners, unknownOwners } from '../../policy/owner-names.ts';
import { byPlace, type ParsedSet, type PolicySetResult } from '../../policy/parse.ts';
import { formatProblem, type PolicyProblem } from '../../policy/problem.ts';
import { type NamedOwners, readSettings, type Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import type { CommonFlags } from '../flags.ts';
import { readAt } from '../forecast/span.ts';
import type { ReadFleet } from '../read-fleet.ts';

export interface ValidateFlags extends CommonFlags {
  matches?: boolean;
  strict?: boolean;
}

export interface Examined {
  /** Absent if the policies can't be read. */
  set?: PolicySet;
  /** The numbers of policies, including disabled ones, and of files that were read. */
  written: { policies: number; files: number };
  problems: readonly (PolicyProblem | Finding)[];
  warnings: readonly (PolicyProblem | Finding)[];
  /** Parts that were not checked, or not completely, one line each. */
  notes: readonly string[];
  fleet?: ReadFleet;
  /** Present with `--matches`. */
  matches?: readonly Matches[];
}

/** Reads and lints policies; with a fleet, against its computes. Throws a UserError if the settings or the fleet can't be read. */
export async function examine(paths: readonly string[], flags: ValidateFlags): Promise<Examined> {
  const nowMs = readAt(flags.at) ?? Date.now();
  const needsFleet = flags.matches === true || flags.fleet !== undefined;
  const { settings, notes } = await settingsFor(flags, paths, needsFleet);
  const loaded = await load(paths, settings);
  const { valid, checked, refused } = partsOf(loaded);
  if (!checked) return { problems: refused, warnings: [], notes, written: { policies: 0, files: 0 } };
  const { set, written } = checked;
  const reading = needsFleet && settings ? fleetFor(settings, flags, { set, nowMs }) : undefined;
  // Problems of files are shown all the same.
  const fleet = await (loaded.ok ? reading : reading?.catch((error) => withoutFleet(error, notes)));
  const findings = lint(checked, settings, { nowMs, fleet, isWhole: loaded.ok });
  const { errors, warnings } = ownersIn(paths.length === 0 && settings ? namedIn(settings) : undefined, loaded, flags);
  const examined = {
    ...(valid && { set }),
    written: { policies: written.length, files: new Set(written.map(({ file }) => file)).size },
    problems: [...refused, ...errors, ...findings.filter(({ severity }) => severity === 'error')],
    warnings: [...checked.warnings, ...warnings, ...findings.filter(({ severity }) => severity === 'warning')],
    notes: [...notes, ...(fleet ? notesAbout(fleet, set, flags) : [])],
    ...(fleet && { fleet }),
    ...(fleet && flags.matches && valid && { matches: matchesOf(set.policies, fleet.computes, nowMs) }),
  };
  return flags.strict ? withoutWarnings(examined) : examined;
}

/** `valid`: the set that a daemon would load. `checked`: what can be checked, even without such a set. `refused`: the problems of files. */
function partsOf(loaded: PolicySetResult) {
  if (loaded.ok) return { valid: loaded, checked: loaded, refused: [] };
  const { others, readable, problems } = loaded;
  return { valid: others, checked: others ?? readable, refused: problems };
}

async function fleetFor(
  settings: Settings,
  { fleet: fleetFile, live }: ValidateFlags,
  { set, nowMs }: { set: PolicySet; nowMs: number },
): Promise<ReadFleet> {
  // A plain validation, as in a hook of Git, should start fast.
  const { readFleetOrFail } = await import('../read-fleet.ts');
  const readBranches = compilePolicies(set).selectsByBranch;
  return readFleetOrFail({ settings, fleetFile, live, nowMs, readBranches, acceptsMissing: true });
}

function withoutFleet(error: unknown, notes: string[]): undefined {
  if (!(error instanceof UserError)) throw error;
  notes.push(`warnings are based on the selectors alone: ${error.message}`);
}

function lint(
  { set: { policies, sources }, written }: ParsedSet,
  settings: Settings | undefined,
  { nowMs, fleet, isWhole }: { nowMs: number; fleet: ReadFleet | undefined; isWhole: boolean },
): Finding[] {
  return lintPolicySet({
    policies,
    isWhole,
    sources,
    written,
    nowMs,
    plans: plansOf(settings),
    profiles: new Map(settings?.accounts.map(({ name, profile }) => [name, profile])),
    disruption: settings?.disruption,
    notifyBeforeMs: settings?.notify.beforeMs,
    ...(fleet?.missing.length === 0 && { fleet: fleet.computes }),
  });
}

const NO_OWNER_PROBLEMS = { errors: [], warnings: [] };

function namedIn({ owners, notify, teams }: Settings): NamedOwners {
  return { owners, receivers: notify.receivers, teams };
}

/** Problems of owners that the settings name and nothing defines. None are found unless the owners in all files are known. */
function ownersIn(named: NamedOwners | undefined, loaded: PolicySetResult, { config = 'ebb.yaml' }: ValidateFlags) {
  const policies = namingOwners(loaded);
  if (!named || !policies) return NO_OWNER_PROBLEMS;
  const names = { file: config, ...named, policies };
  return { errors: unknownOwners(names), warnings: misspeltOwners(names) };
}

/** The policies, and the owners in files whose policies can't be parsed. Undefined if a file can't be opened, so that some owners are unknown. */
function namingOwners(loaded: PolicySetResult): readonly { owner?: string }[] | undefined {
  if (loaded.ok) return loaded.set.policies;
  const { others, readable } = loaded;
  if (others) return others.set.policies;
  return readable?.otherOwners && [...readable.set.policies, ...readable.otherOwners.map((owner) => ({ owner }))];
}

function load(named: readonly string[], settings: Settings | undefined): Promise<PolicySetResult> {
  const isComplete = named.length === 0;
  return loadPolicySet({ paths: isComplete ? (settings?.policies ?? []) : named, isComplete, settings });
}

function withoutWarnings({ problems, warnings, ...rest }: Examined): Examined {
  const refused = warnings.map((warning) =>
    'severity' in warning ? { ...warning, severity: 'error' as const } : warning,
  );
  return { ...rest, problems: [...problems, ...refused].sort(byPlace), warnings: [] };
}

/**
 * Reads the settings. Their problems are an error, unless the command line names policies, and needs neither a settings file nor a fleet. Then
 * only the checks of plans and sources are left out.
 */
async function settingsFor(flags: ValidateFlags, named: readonly string[], needsFleet: boolean) {
  const { config, apiUrl } = flags;
  const read = readSettings({ configFile: config, flags: { apiUrl } });
  if (read.ok) return { settings: read.settings, notes: read.warnings };
  if (named.length === 0 || needsFleet || config !== undefined) {
    const loaded = await loadPolicySet({
      paths: named.length > 0 ? named : (read.policies ?? []),
      settings: undefined,
    });
    const { errors } = ownersIn(named.length === 0 && read.policies ? read.named : undefined, loaded, flags);
    const ofPolicies = [...errors, ...problemsWithoutSettings(loaded)];
    throw new UserError([...read.problems, ...ofPolicies.map((problem) => formatProblem(problem))].join('\n'));
  }
  return { settings: undefined, notes: [`the plans and sources of the settings are not known: ${read.problems[0]}`] };
}

/** The problems of policies that don't depend on settings. Duplicate names do, for example: settings may divide policies among teams. */
function problemsWithoutSettings(loaded: PolicySetResult): PolicyProblem[] {
  return loaded.ok ? [] : loaded.problems.filter(({ code }) => code !== 'duplicate-name' && code !== 'limit');
}

function plansOf(settings: Settings | undefined) {
  return new Map(settings?.accounts.flatMap(({ name, plan }) => (plan === undefined ? [] : [[name, plan] as const])));
}

function notesAbout(
  { computes, projects: read, missing, branchNamesRefused, notes }: ReadFleet,
  set: PolicySet,
  { fleet: fleetFile }: ValidateFlags,
): string[] {
  const partialNotes =
    missing.length === 0 ? [] : ['a part of the fleet is missing, so warnings are based on the selectors alone'];
  // A snapshot does not say which projects a key shows.
  const projects = fleetFile === undefined ? read : [];
  // With an incomplete list the number of projects of an account is unknown.
  const narrow = missing.length === 0 ? narrowKeys({ projects, computes, policies: set.policies }) : [];
  return [
    ...notes,
    ...refusedBranchNotes(branchNamesRefused),
    ...narrow.map(({ message }) => message),
    ...missing.map((line) => `left out: ${line}`),
    ...partialNotes,
  ];
}

interface Matches {
  policy: string;
  computes: readonly Compute[];
  /** The number of computes that the policy will select once they are old enough. */
  tooYoung: number;
  /** The number of computes that the policy may select: a name or role in its selector is unknown. */
  unknown: number;
}

function matchesOf(policies: readonly Policy[], fleet: readonly Compute[], nowMs: number): Matches[] {
  return policies.map(({ name, select }) => {
    const matches = compileSelector(select);
    const selected = (selection: Selection, atMs: number) =>
      fleet.filter((compute) => matches(compute, atMs) === selection);
    const computes = selected('yes', nowMs);
    const tooYoung = selected('yes', AT_ANY_AGE).length - computes.length;
    return { policy: name, computes, tooYoung, unknown: selected('unknown', nowMs).length };
  });
}
