import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import type { z } from 'zod';
import { printable } from '../common/safe-text.ts';
import type { Prices } from '../domain/compute/cost.ts';
import type { NotifyRules } from '../domain/notifications/notification.ts';
import type { ManualChanges, PartialDisruption } from '../domain/policy/disruption.ts';
import type { OwnerRule } from '../domain/policy/owners.ts';
import type { KnownSources } from '../policy/sources.ts';
import type { Team } from '../policy/teams.ts';
import { toDisruption, toManualChanges } from '../policy/to-domain.ts';
import type { LoginProvider } from '../ports/roles.ts';
import { formerProfileWarnings } from './account-schema.ts';
import { type Account, accountsOf, type SettingsContext } from './accounts.ts';
import { type ListenAddress, parseQueueUrl, type QueueLocation } from './addresses.ts';
import { type AuditCopies, auditCopiesOf } from './audit-schema.ts';
import { readConfigFile } from './config-file.ts';
import { loginOf } from './login-schema.ts';
import { notifyRulesOf } from './notify-schema.ts';
import { type CheckedValues, combinationProblems, parseWithoutInvalid, schemaProblems } from './problems.ts';
import { findProxy, type ProxySetting } from './proxy.ts';
import { knownSourcesOf, type LOG_FORMATS, type LOG_LEVELS, type MODES, settingsSchema } from './schema.ts';
import { type Secret, secret, secretPartsOf } from './secret.ts';
import { type Environment, gatherInputs, type Inputs, type SettingsFlags, sourceVariables } from './sources.ts';
import { teamsOf } from './team-schema.ts';

/** The checked settings. Their secrets are not shown when they are logged or turned into JSON. */
export interface Settings {
  mode: (typeof MODES)[number];
  /** Base URL of the control API, without a trailing slash. */
  apiUrl: string;
  allowPlainHttp: boolean;
  /** The rate limit of an account. */
  apiRequestsPerMinute: number;
  /** The share of the rate limits that is left to other users of the account, 0 to 0.9. */
  apiReserve: number;
  /** At least one: `default` if `ebb.yaml` names none. */
  accounts: readonly Account[];
  proxy: ProxySetting | undefined;
  prices: Prices;
  /** Globs on projects and branches, each with an owner. The first match counts. The scopes of teams come last. */
  owners: readonly OwnerRule[];
  /** Globs as in `owners`, each with the worth of a start, in milliseconds awake. */
  coldStartWorthMs: readonly (readonly [glob: string, ms: number])[];
  /** `always`: policy sets are staged even if the control API is on this machine. */
  staging: 'auto' | 'always';
  /** The default for policies; missing keys have the domain's defaults. */
  disruption: PartialDisruption;
  /** The default for policies. */
  manualChanges: ManualChanges | undefined;
  /** Files, folders and globs: relative to the working folder, or absolute. */
  policies: readonly string[];
  teams: readonly Team[];
  /** Connection sources, and the origins that those of policy files may reach. */
  knownSources: KnownSources;
  notify: NotifyRules;
  /** The secrets that sources and receivers may name, by variable. */
  sourceVariables: ReadonlyMap<string, Secret>;
  queue: QueueLocation;
  /** The folder of state that must outlive the store; absolute. */
  stateDir: string;
  group: string;
  /** The version of the policies, such as a commit. */
  revision: string | undefined;
  listen: ListenAddress;
  /** The shared bearer token of the pages. */
  token: Secret | undefined;
  /** The file of tokens for each person; absolute. */
  tokenFile: string | undefined;
  /** The login provider whose tokens are also accepted. */
  login: LoginProvider | undefined;
  audit: AuditCopies;
  /** Host names that are accepted without a token, besides those of this machine; in lower case. */
  httpHosts: readonly string[];
  /** Serves HTTP beyond this machine without a token. */
  insecure: boolean;
  logLevel: (typeof LOG_LEVELS)[number];
  /** Absent: text on a terminal, otherwise JSON. */
  logFormat: (typeof LOG_FORMATS)[number] | undefined;
  perComputeMetrics: boolean;
}

/** `warnings` has one line for each former name that is still accepted. */
export type SettingsResult = { ok: true; settings: Settings; warnings: string[] } | InvalidSettings;

interface InvalidSettings {
  ok: false;
  problems: string[];
  /** The paths of the policies. Absent if this setting is invalid itself. */
  policies?: readonly string[];
  /** Absent if one of these settings is invalid itself. */
  named?: NamedOwners | undefined;
}

/** The settings that define owners or refer to them. */
export interface NamedOwners {
  owners: readonly OwnerRule[];
  receivers: readonly { name: string; owners?: readonly string[] }[];
  teams: readonly { name: string }[];
}

type Values = z.output<typeof settingsSchema>;

/**
 * Reads `ebb.yaml`, or `configFile`. Variables override the file, and flags override both. A problem is one line with the place and the remedy,
 * and never contains a secret. Key files are not opened here, but by `readApiKey` when a key is needed.
 */
export function readSettings(
  options: { flags?: SettingsFlags; env?: Environment; cwd?: string; configFile?: string | undefined } = {},
): SettingsResult {
  const { flags = {}, env = process.env, cwd = process.cwd(), configFile } = options;
  const config = readConfigFile({ cwd, named: configFile });
  if (config.problems.length > 0) return refused(config.problems);
  const inputs = gatherInputs({ flags, env, config, cwd });
  const overrides = Object.fromEntries([...inputs].map(([name, { value }]) => [name, value]));
  const values = { ...config.values, ...overrides };
  const parsed = settingsSchema.safeParse(values);
  // The policy files can still be checked if other settings have problems.
  const { data: paths } = settingsSchema.shape.policies.safeParse(Reflect.get(values, 'policies'));
  const policies = paths && { policies: policyPaths(paths, inputs, cwd) };
  const checked = parsed.success
    ? { values: parsed.data, areValid: () => true }
    : parseWithoutInvalid(parsed.error, values);
  const invalid = parsed.success ? [] : schemaProblems(parsed.error, inputs, config);
  if (!checked) return { ...refused(invalid), ...policies };
  const proxy = findProxy(env, checked.values.api_url);
  const proxyProblems = proxy.ok || !checked.areValid('api_url') ? [] : [proxy.problem];
  const problems = [...invalid, ...combinationProblems(checked, inputs, env), ...proxyProblems];
  if (!parsed.success || !proxy.ok || problems.length > 0)
    return { ...refused(problems), ...policies, named: namedOwners(checked) };
  const settings = assemble({ values: parsed.data, inputs, env, cwd, file: config.file ?? 'ebb.yaml' });
  return {
    ok: true,
    settings: { ...settings, proxy: proxy.value, insecure: flags.insecure ?? false },
    warnings: formerProfileWarnings(config.values),
  };
}

function namedOwners({ values, areValid }: CheckedValues): NamedOwners | undefined {
  if (!areValid('owners', 'notify', 'teams', 'policies')) return undefined;
  const receivers = Object.entries(values.notify).map(([name, { owners }]) => ({ name, ...(owners && { owners }) }));
  return { owners: Object.entries(values.owners), receivers, teams: teamsOf(values.teams, '') };
}

/** Makes names and values of the file printable, so that each problem stays on one line. */
function refused(problems: readonly string[]): InvalidSettings {
  return { ok: false, problems: problems.map(printable) };
}

/** All secrets of the settings, except keys from files. Logs and metrics must never show them. */
export function secretsOf({ accounts, queue, token, proxy, sourceVariables: variables }: Settings): string[] {
  const keys = accounts.map(({ apiKey }) => (apiKey?.from === 'variable' ? apiKey.key : undefined));
  const queueUrl = queue.passwords.length > 0 ? [queue.url, ...queue.passwords] : [];
  const proxyUrl = proxy !== undefined && proxy.passwords.length > 0 ? [proxy.url, ...proxy.passwords] : [];
  const ofSources = [...variables.values()].flatMap((variable) => secretPartsOf(variable.reveal()));
  const others = [...keys, ...queueUrl, token, ...proxyUrl].flatMap((value) => value?.reveal() ?? []);
  return [...others, ...ofSources];
}

function assemble(context: SettingsContext & { file: string }): Omit<Settings, 'proxy' | 'insecure'> {
  const { values, inputs, env, cwd, file } = context;
  const accounts = accountsOf(context);
  const teams = teamsOf(values.teams, inputs.get('teams')?.base ?? cwd);
  return {
    mode: values.mode,
    apiUrl: values.api_url,
    allowPlainHttp: values.allow_plain_http,
    apiRequestsPerMinute: values.api_requests_per_minute,
    apiReserve: values.api_reserve,
    accounts,
    prices: values.prices,
    owners: [...Object.entries(values.owners), ...teams.map(({ name, projects }) => [projects, name] as const)],
    coldStartWorthMs: Object.entries(values.cold_start_worth),
    staging: values.staging,
    disruption: toDisruption(values.disruption),
    manualChanges: values.manual_changes && toManualChanges(values.manual_changes),
    policies: policyPaths(values.policies, inputs, cwd),
    teams,
    knownSources: knownSourcesOf(values.sources, values.sources_allowed_origins, {
      file,
      tokenOrigins: inputs.get('sources_allowed_origins')?.source === 'variable' ? values.sources_allowed_origins : [],
    }),
    notify: notifyRulesOf(values.notify, {
      allowedOrigins: values.notify_allowed_origins,
      beforeMs: values.notify_before,
      statusUrl: values.status_url,
      file,
    }),
    sourceVariables: sourceVariables(env),
    queue: queueLocation(values, inputs, cwd),
    stateDir: resolve(inputs.get('state_dir')?.base ?? cwd, values.state_dir),
    group: values.group ?? defaultGroup(values.api_url, accounts),
    revision: values.revision,
    listen: values.listen,
    httpHosts: values.http_hosts,
    token: env.EBB_TOKEN ? secret(env.EBB_TOKEN) : undefined,
    tokenFile: values.token_file && resolve(inputs.get('token_file')?.base ?? cwd, values.token_file),
    login: loginOf(values.login),
    audit: auditCopiesOf(values.audit, {
      allowedOrigins: values.notify_allowed_origins,
      base: inputs.get('audit')?.base ?? cwd,
      settingsFile: file,
    }),
    logLevel: values.log_level,
    logFormat: values.log_format,
    perComputeMetrics: values.per_compute_metrics,
  };
}

/** Paths relative to the working folder stay as written, since messages show them. */
function policyPaths(paths: readonly string[], inputs: Inputs, cwd: string): readonly string[] {
  const base = inputs.get('policies')?.base ?? cwd;
  return base === cwd ? paths : paths.map((path) => resolve(base, path));
}

function queueLocation(values: Values, inputs: Inputs, cwd: string): QueueLocation {
  const queue = values.queue_url;
  if (queue.kind !== 'embedded') return queue;
  const dir = queue.url.reveal().slice('embedded:'.length);
  const absolute = parseQueueUrl(`embedded:${resolve(inputs.get('queue_url')?.base ?? cwd, dir)}`);
  return absolute.ok ? { ...absolute.value, shown: queue.shown } : queue;
}

/** The default of `group`. It does not depend on API keys, since a rotated key must find the same state. */
export function defaultGroup(apiUrl: string, accounts: readonly Pick<Account, 'name'>[]): string {
  const names = accounts.map(({ name }) => name).sort();
  return createHash('sha256')
    .update([apiUrl, ...names].join('\n'))
    .digest('hex')
    .slice(0, 12);
}
