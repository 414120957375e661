import { basename } from 'node:path';
import { groupBy } from '../domain/grouping.ts';
import type { PolicySet } from '../domain/policy/policy.ts';
import { NO_TEAM } from '../domain/policy/team-parts.ts';
import { findPolicyFiles } from '../policy/find-files.ts';
import { loadPolicySet } from '../policy/load.ts';
import { misspeltOwners, unknownOwners } from '../policy/owner-names.ts';
import { formatProblem, type PolicyProblem } from '../policy/problem.ts';
import { watchFiles } from '../policy/watch.ts';
import type { CostRules, Rules, RulesReading, RulesSource } from '../ports/rules.ts';
import type { Settings, SettingsResult } from '../settings/settings.ts';
import { pathShortener } from './shown-paths.ts';

/** Settings, and fields of accounts, that take effect without a restart. */
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

interface RulesFromFilesOptions {
  /** Reads the settings again, from the same file, flags and variables. */
  readSettings: () => SettingsResult;
  /** The settings at the start. */
  settings: Settings;
  /** The absolute path of the settings file, which need not exist. */
  configFile: string;
  /** The base of relative paths. */
  cwd?: string;
}

/** Reads rules from the policy files and the settings file, and watches both. */
export function rulesFromFiles(options: RulesFromFilesOptions): RulesSource {
  const { configFile, cwd = process.cwd() } = options;
  let { policies: paths, teams } = options.settings;
  let readBefore: string[] = [];
  const allPaths = () => [...paths, ...teams.flatMap(({ policies }) => policies)];
  const watch = watchFiles({
    files: async () => [configFile, ...(await findPolicyFiles(allPaths(), cwd)).files, ...readBefore],
  });

  async function read(): Promise<RulesReading> {
    const settings = options.readSettings();
    if (!settings.ok) return settings;
    ({ policies: paths, teams } = settings.settings);
    const files: string[] = [];
    const { owners, notify } = settings.settings;
    const loaded = await loadPolicySet({
      paths,
      cwd,
      settings: settings.settings,
      isComplete: true,
      onRead: (file) => files.push(file),
    });
    readBefore = files;
    const usable = loaded.ok ? loaded : loaded.others;
    const problems = loaded.ok ? [] : loaded.problems;
    if (!usable) return { ok: false, problems: problems.map(inOneLine) };
    const { policies } = usable.set;
    const names = { file: basename(configFile), owners, receivers: notify.receivers, teams, policies };
    const ownerWarnings = [...unknownOwners(names), ...misspeltOwners(names)];
    return {
      ok: true,
      rules: rulesOf(settings.settings, usable.set),
      broken: byTeam(problems),
      warnings: [...settings.warnings, ...[...usable.warnings, ...ownerWarnings].map(inOneLine)],
      needRestart: changedForRestart(options.settings, settings.settings),
    };
  }

  return {
    changed: watch.changed,
    writtenAgoMs: watch.writtenAgoMs,
    async read() {
      const reading = await watch.readConsistently(read, { waitUntilUnchanged: true });
      const shorten = pathShortener({ configFile, paths: allPaths(), cwd });
      return { ...mapTexts(reading, shorten), changes: watch.changes() };
    },
  };
}

function mapTexts(reading: RulesReading, change: (text: string) => string): RulesReading {
  if (!reading.ok) return { ...reading, problems: reading.problems.map(change) };
  const { broken = new Map(), warnings } = reading;
  const changed = [...broken].map(([team, problems]) => [team, problems.map(change)] as const);
  return { ...reading, broken: new Map(changed), warnings: warnings.map(change) };
}

/** Combines a policy set with the settings that can change while a daemon runs. */
export function rulesOf(settings: Settings, policies: PolicySet): Rules {
  const { disruption, manualChanges, revision, accounts, teams, notify } = settings;
  const costs = costRulesOf(settings);
  const profiles = new Map(accounts.map(({ name, profile }) => [name, profile]));
  const verified = new Map(accounts.map(({ name, verified: facts }) => [name, facts]));
  return { policies, disruption, manualChanges, revision, costs, profiles, verified, teams, notify };
}

function costRulesOf({ accounts, owners, coldStartWorthMs, prices }: Settings): CostRules {
  const plans = new Map(accounts.flatMap(({ name, plan }) => (plan === undefined ? [] : [[name, plan] as const])));
  return { owners, coldStartWorthMs, prices, plans };
}

function byTeam(problems: readonly PolicyProblem[]): Map<string, string[]> {
  const groups = groupBy(problems, ({ team = NO_TEAM }) => team);
  return new Map([...groups].map(([team, ofTeam]) => [team, ofTeam.map(inOneLine)]));
}

function inOneLine({ excerpt: _excerpt, ...problem }: PolicyProblem): string {
  return formatProblem(problem).replaceAll('\n', ' ');
}

/** Names the changed settings that need a restart, as in `ebb.yaml`. Secrets are not compared: the variables of a process can't change. */
function changedForRestart(settingsBefore: Settings, settingsNow: Settings): string[] {
  const [before, now] = [comparable(settingsBefore), comparable(settingsNow)];
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return keys.filter((key) => textOf(before[key]) !== textOf(now[key])).map(snakeCase);
}

/** JSON, in which maps, such as the groups of `login`, are lists of their entries. */
function textOf(setting: unknown): string | undefined {
  return JSON.stringify(setting, (_, value) => (value instanceof Map ? [...value] : value));
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
