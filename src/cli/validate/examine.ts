import { refusedBranchNotes } from '../../app/fleet/branches.ts';
import { narrowKeys } from '../../app/fleet/inventory.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { AT_ANY_AGE, compileSelector, type Selection } from '../../domain/policy/select.ts';
import { type Finding, lintPolicySet } from '../../policy/lint/lint.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { misspeltOwners, unknownOwners } from '../../policy/owner-names.ts';
import { byPlace } from '../../policy/parse.ts';
import { formatProblem, type PolicyProblem } from '../../policy/problem.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
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
  const { valid, refused } = await load(paths, settings);
  if (!valid) return { problems: refused, warnings: [], notes, written: { policies: 0, files: 0 } };
  const { set, written } = valid;
  // A plain validation, as in a hook of Git, should start fast.
  const fleet =
    needsFleet && settings
      ? await (await import('../read-fleet.ts')).readFleetOrFail({
          settings,
          fleetFile: flags.fleet,
          live: flags.live,
          nowMs,
          readBranches: compilePolicies(set).selectsByBranch,
          partial: true,
        })
      : undefined;
  const isWhole = fleet !== undefined && fleet.missing.length === 0;
  const findings = lintPolicySet({
    policies: set.policies,
    sources: set.sources,
    written,
    nowMs,
    plans: plansOf(settings),
    profiles: new Map(settings?.accounts.map(({ name, profile }) => [name, profile])),
    disruption: settings?.disruption,
    notifyBeforeMs: settings?.notify.beforeMs,
    ...(isWhole && { fleet: fleet.computes }),
  });
  const { errors, warnings } = paths.length === 0 && settings ? ownersIn(settings, set, flags) : NO_OWNER_PROBLEMS;
  const examined = {
    set,
    written: { policies: written.length, files: new Set(written.map(({ file }) => file)).size },
    problems: [...refused, ...errors, ...findings.filter(({ severity }) => severity === 'error')],
    warnings: [...valid.warnings, ...warnings, ...findings.filter(({ severity }) => severity === 'warning')],
    notes: [...notes, ...(fleet ? notesAbout(fleet, set, flags) : [])],
    ...(fleet && { fleet }),
    ...(fleet && flags.matches && { matches: matchesOf(set.policies, fleet.computes, nowMs) }),
  };
  return flags.strict ? withoutWarnings(examined) : examined;
}

const NO_OWNER_PROBLEMS = { errors: [], warnings: [] };

/** Problems of owners that the settings name but nothing defines. To find them, all policies must have been read. */
function ownersIn(
  { owners, notify, teams }: Settings,
  { policies }: PolicySet,
  { config = 'ebb.yaml' }: ValidateFlags,
) {
  const names = { file: config, owners, receivers: notify.receivers, teams, policies };
  return { errors: unknownOwners(names), warnings: misspeltOwners(names) };
}

/** Loads what can be read: problems of one team's files don't stop the check of the others. */
async function load(named: readonly string[], settings: Settings | undefined) {
  const isComplete = named.length === 0;
  const loaded = await loadPolicySet({
    paths: isComplete ? (settings?.policies ?? []) : named,
    isComplete,
    settings,
  });
  return loaded.ok ? { valid: loaded, refused: [] } : { valid: loaded.others, refused: loaded.problems };
}

function withoutWarnings({ problems, warnings, ...rest }: Examined): Examined {
  const refused = warnings.map((warning) =>
    'severity' in warning ? { ...warning, severity: 'error' as const } : warning,
  );
  return { ...rest, problems: [...problems, ...refused].sort(byPlace), warnings: [] };
}

/**
 * Reads the settings. If policies are named on the command line and neither a settings file nor a fleet is, settings with problems only
 * prevent the checks of plans and sources.
 */
async function settingsFor(
  { config: configFile, apiUrl }: ValidateFlags,
  named: readonly string[],
  needsFleet: boolean,
) {
  const read = readSettings({ configFile, flags: { apiUrl } });
  if (read.ok) return { settings: read.settings, notes: read.warnings };
  if (named.length === 0 || needsFleet || configFile !== undefined) {
    const ofPolicies = await problemsWithoutSettings(named.length > 0 ? named : (read.policies ?? []));
    throw new UserError([...read.problems, ...ofPolicies.map((problem) => formatProblem(problem))].join('\n'));
  }
  return { settings: undefined, notes: [`the plans and sources of the settings are not known: ${read.problems[0]}`] };
}

/** Problems of policies that don't depend on the settings: duplicate names and limits do, since the settings may divide the policies among teams. */
async function problemsWithoutSettings(paths: readonly string[]): Promise<PolicyProblem[]> {
  const loaded = await loadPolicySet({ paths, settings: undefined });
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
  const partly =
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
    ...partly,
  ];
}

interface Matches {
  policy: string;
  computes: readonly Compute[];
  /** Computes that it will select once they are old enough. */
  tooYoung: number;
  /** Computes that it may select: a name or role that it selects by is unknown. */
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
