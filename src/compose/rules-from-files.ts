import { basename } from 'node:path';
import type { PolicySet } from '../domain/policy/policy.ts';
import { NO_TEAM } from '../domain/policy/team-parts.ts';
import { findPolicyFiles } from '../policy/find-files.ts';
import { loadPolicySet } from '../policy/load.ts';
import { misspeltOwners, unknownOwners } from '../policy/owner-names.ts';
import { formatProblem, type PolicyProblem } from '../policy/problem.ts';
import { watchFiles } from '../policy/watch.ts';
import type { CostRules, Rules, RulesReading, RulesSource } from '../ports/rules.ts';
import type { Settings, SettingsResult } from '../settings/settings.ts';

/** Settings that count at once when they are read again, and those of an account that do. */
const RELOADED: ReadonlySet<string> = new Set([
  'policies',
  'disruption',
  'manualChanges',
  'prices',
  'owners',
  'coldStartWorthMs',
  'revision',
  'knownSources',
  'teams',
  'notify',
]);
const RELOADED_OF_ACCOUNT: ReadonlySet<string> = new Set(['plan', 'profile', 'verified']);

export interface RulesFromFilesOptions {
  /** Reads the settings again, from the same file, flags and variables. */
  readSettings: () => SettingsResult;
  /** The settings at the start. */
  settings: Settings;
  /** The settings file, absolute; it need not be there. */
  configFile: string;
  /** From where relative paths start. */
  cwd?: string;
}

/** Rules as the policy files and the settings file have them. The first reading may be long past: what changed since is noticed. */
export function rulesFromFiles(options: RulesFromFilesOptions): RulesSource {
  const { configFile, cwd = process.cwd() } = options;
  let { policies: paths, teams } = options.settings;
  let readBefore: string[] = [];
  const watch = watchFiles({
    // The paths of teams decide who owns a file.
    files: async () => {
      const all = [...paths, ...teams.flatMap(({ policies }) => policies)];
      return [configFile, ...(await findPolicyFiles(all, cwd)).files, ...readBefore];
    },
  });

  async function read(): Promise<RulesReading> {
    const settings = options.readSettings();
    if (!settings.ok) return settings;
    ({ policies: paths, teams } = settings.settings);
    const files: string[] = [];
    const { knownSources, notify } = settings.settings;
    const known = { knownSources, teams, receivers: notify.receivers };
    const loaded = await loadPolicySet({ paths, cwd, ...known, isComplete: true, onRead: (file) => files.push(file) });
    readBefore = files;
    const usable = loaded.ok ? loaded : loaded.others;
    const problems = loaded.ok ? [] : loaded.problems;
    if (!usable) return { ok: false, problems: problems.map(inOneLine) };
    const { owners } = settings.settings;
    const names = {
      file: basename(configFile),
      owners,
      receivers: notify.receivers,
      teams,
      policies: usable.set.policies,
    };
    const ofOwners = [...unknownOwners(names), ...misspeltOwners(names)];
    return {
      ok: true,
      rules: rulesOf(settings.settings, usable.set),
      broken: byTeam(problems),
      warnings: [...settings.warnings, ...[...usable.warnings, ...ofOwners].map(inOneLine)],
      needRestart: changedForRestart(options.settings, settings.settings),
    };
  }

  return {
    changed: watch.changed,
    writtenAgoMs: watch.writtenAgoMs,
    async read() {
      const reading = await watch.readConsistently(read, { waitUntilUnchanged: true });
      return { ...reading, changes: watch.changes() };
    },
  };
}

/** The rules, from settings and a policy set, that may be replaced while a daemon runs. */
export function rulesOf(settings: Settings, policies: PolicySet): Rules {
  const { disruption, manualChanges, revision, accounts, teams, notify } = settings;
  const costs = costRulesOf(settings);
  const profiles = new Map(accounts.map(({ name, profile }) => [name, profile]));
  const verified = new Map(accounts.map(({ name, verified: facts }) => [name, facts]));
  return { policies, disruption, manualChanges, revision, costs, profiles, verified, teams, notify };
}

/** Owners and prices of usage. */
export function costRulesOf({ accounts, owners, coldStartWorthMs, prices }: Settings): CostRules {
  const plans = new Map(accounts.flatMap(({ name, plan }) => (plan === undefined ? [] : [[name, plan] as const])));
  return { owners, coldStartWorthMs, prices, plans };
}

/** By team, what is wrong with its files. */
function byTeam(problems: readonly PolicyProblem[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const problem of problems) {
    const { team = NO_TEAM } = problem;
    found.set(team, [...(found.get(team) ?? []), inOneLine(problem)]);
  }
  return found;
}

function inOneLine({ excerpt: _excerpt, ...problem }: PolicyProblem): string {
  return formatProblem(problem).replaceAll('\n', ' ');
}

/** Names as in `ebb.yaml`. Secrets don't count: they come from variables, which a running process keeps. */
function changedForRestart(before: Settings, now: Settings): string[] {
  const [old, fresh] = [comparable(before), comparable(now)];
  const keys = [...new Set([...Object.keys(old), ...Object.keys(fresh)])];
  return keys.filter((key) => JSON.stringify(old[key]) !== JSON.stringify(fresh[key])).map(snakeCase);
}

function comparable(settings: Settings): Record<string, unknown> {
  const accounts = settings.accounts.map((account) => without(account, RELOADED_OF_ACCOUNT));
  return without({ ...settings, accounts }, RELOADED);
}

function without(object: object, names: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)));
}

function snakeCase(name: string): string {
  if (name === 'queue') return 'queue_url';
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
