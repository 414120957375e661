import type { z } from 'zod';
import { BEARER_TOKEN_FORM, isBearerToken } from '../common/bearer-token.ts';
import { isLoopbackHost } from '../common/loopback.ts';
import { didYouMean, nearest } from '../common/names.ts';
import { ACCOUNT_PLANS } from '../domain/compute/cost.ts';
import { isAboutContent, messageOf } from '../policy/schema-problems.ts';
import { ACCOUNT_FIELDS } from './account-schema.ts';
import { isPlainAndRemote } from './addresses.ts';
import { AUDIT_KEYS, WEBHOOK_KEYS } from './audit-schema.ts';
import type { ConfigFile } from './config-file.ts';
import { MISPLACED_KEYS, SETTINGS } from './declarations.ts';
import { LOGIN_KEYS, unknownTeams } from './login-schema.ts';
import { destinationRefused, RECEIVER_KEYS } from './notify-schema.ts';
import { type SettingName, settingsSchema } from './schema.ts';
import type { Environment, Inputs } from './sources.ts';
import { TEAM_KEYS } from './team-schema.ts';

type Issue = z.core.$ZodIssue;
type Values = z.output<typeof settingsSchema>;

/** The keys of mappings within a setting, by its name. */
const NESTED_KEYS: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['audit', AUDIT_KEYS],
  ['webhook', WEBHOOK_KEYS],
  ['login', LOGIN_KEYS],
  ['prices', ACCOUNT_PLANS],
  ['profile', ['max_connections', 'reserved']],
]);

/** The issues of the schema, one line each: the place, the problem, the remedy. */
export function schemaProblems(error: z.ZodError, inputs: Inputs, config: ConfigFile): string[] {
  return error.issues
    .flatMap((issue) => issueMeant(issue, []))
    .flatMap(({ issue, path }) => {
      if (issue.code === 'unrecognized_keys') return unknownKeys(issue, path, config);
      const message = readableMessage(issue, path, config);
      const { source, where } = inputs.get(path[0] as SettingName) ?? {
        source: 'file',
        where: config.file ?? 'settings',
      };
      if (source !== 'file') return [`${where}: ${message}`];
      const separator = message.startsWith('expected') ? ': ' : ' ';
      return [`${placeOf(path, config) ?? where}: ${labelOf(path, config)}${separator}${message}`];
    });
}

interface PlacedIssue {
  issue: Issue;
  path: string[];
}

/** Returns an issue with its path. For a union, returns the issues of the alternative that was probably meant. */
function issueMeant(issue: Issue, parent: readonly string[]): PlacedIssue[] {
  const path = [...parent, ...issue.path.map(String)];
  const meant = issue.code === 'invalid_union' ? issue.errors.find((issues) => issues.some(isAboutContent)) : undefined;
  return meant === undefined ? [{ issue, path }] : meant.flatMap((inner) => issueMeant(inner, path));
}

/** The message of an issue. Schemas that are shared with the policy language have zod's own messages, which are replaced. */
function readableMessage(issue: Issue, path: readonly string[], config: ConfigFile): string {
  return issue.message.startsWith('Invalid') ? messageOf(issue, valueAt(path, config)) : issue.message;
}

/** The place of a setting, or of the innermost entry that lacks it. */
function placeOf(path: readonly string[], { places }: ConfigFile): string | undefined {
  const upwards = path.map((_, index) => path.slice(0, path.length - index).join('.'));
  return upwards.map((prefix) => places.get(prefix)).find((place) => place !== undefined);
}

function labelOf(path: readonly string[], config: ConfigFile): string {
  const [last = '', list = ''] = path.toReversed();
  return Array.isArray(valueAt(path.slice(0, -1), config)) ? `entry ${Number(last) + 1} of ${list}` : last;
}

function valueAt(path: readonly string[], { values }: ConfigFile): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], values);
}

type UnrecognizedKeys = Extract<Issue, { code: 'unrecognized_keys' }>;

function unknownKeys({ keys, message }: UnrecognizedKeys, path: readonly string[], config: ConfigFile): string[] {
  const [list] = path;
  // Schemas that are shared with the policy language already report one readable line for each key.
  const lines = message.startsWith('unknown key') ? message.split('\n') : [];
  return keys.map((key, index) => {
    const where = placeOf([...path, key], config) ?? config.file;
    const misplaced = MISPLACED_KEYS.get(list === undefined ? key : `${list}.${key}`);
    if (misplaced !== undefined) return `${where}: ${key}: ${misplaced}`;
    return `${where}: ${lines[index] ?? unknownSettingProblem(key, path)}`;
  });
}

function unknownSettingProblem(key: string, path: readonly string[]): string {
  if (path.length === 0) return unknownKeyMessage(key, Object.keys(SETTINGS));
  if (path[0] === 'accounts' && path.length === 2) return unknownKeyMessage(key, ACCOUNT_FIELDS);
  if (path[0] === 'notify' && path.length === 2) return unknownKeyMessage(key, RECEIVER_KEYS);
  if (path[0] === 'teams' && path.length === 2) return unknownKeyMessage(key, TEAM_KEYS);
  return unknownKeyMessage(key, NESTED_KEYS.get(path.at(-1) ?? '') ?? []);
}

function unknownKeyMessage(key: string, known: readonly string[]): string {
  return `unknown setting "${key}"${didYouMean(key, known) || '; see docs/settings.md'}`;
}

/** The parsed settings. A setting that is not valid has its default. */
export interface CheckedValues {
  values: Values;
  areValid(...names: SettingName[]): boolean;
}

/** Parses the settings except those that the error calls invalid. Undefined if even the rest is invalid. */
export function parseWithoutInvalid(error: z.ZodError, values: Record<string, unknown>): CheckedValues | undefined {
  const names = Object.keys(settingsSchema.shape);
  const invalid = new Set(
    error.issues.flatMap((issue) => {
      if (issue.code !== 'unrecognized_keys' || issue.path.length > 0) return issue.path.slice(0, 1).map(String);
      // For a misspelt name, the setting that was meant is not known either: it would wrongly have its default.
      return issue.keys.flatMap((key) => [key, nearest(key, names) ?? key]);
    }),
  );
  const others = Object.entries(values).filter(([name]) => !invalid.has(name));
  const parsed = settingsSchema.safeParse(Object.fromEntries(others));
  return parsed.data && { values: parsed.data, areValid: (...all) => !all.some((name) => invalid.has(name)) };
}

type Check = (values: Values, inputs: Inputs, env: Environment) => string[];

/** Each check, with the settings that it reads. It runs only if these are valid, since its problem may otherwise follow from theirs. */
const COMBINATIONS: readonly (readonly [names: readonly SettingName[], check: Check])[] = [
  [['queue_url'], passwordProblems],
  [['api_url', 'allow_plain_http'], plainHttpProblems],
  [[], variableProblems],
  [['accounts', 'api_key_file'], unusedKeys],
  [['api_url', 'accounts', 'api_key_file'], keyDestinationProblems],
  [['notify', 'audit', 'notify_allowed_origins'], receiverProblems],
  [['login', 'teams'], teamProblems],
];

/** Problems of combinations of settings: misplaced secrets, their destinations, duplicates. */
export function combinationProblems({ values, areValid }: CheckedValues, inputs: Inputs, env: Environment): string[] {
  return COMBINATIONS.flatMap(([names, check]) => (areValid(...names) ? check(values, inputs, env) : []));
}

function passwordProblems({ queue_url: { passwords } }: Values, inputs: Inputs): string[] {
  const queue = inputs.get('queue_url');
  if (passwords.length === 0 || queue === undefined || queue.source === 'variable') return [];
  const seenBy = queue.source === 'flag' ? 'the command line, where other users see it' : 'a file that others read';
  return [`${queue.where}: a password has no place in ${seenBy}; set EBB_QUEUE_URL instead`];
}

function plainHttpProblems({ api_url: apiUrl, allow_plain_http: isAllowed }: Values, inputs: Inputs): string[] {
  if (!isPlainAndRemote(apiUrl) || isAllowed) return [];
  const where = inputs.get('api_url')?.where;
  return [`${where}: http would send the API key unencrypted; use https, or set allow_plain_http: true in ebb.yaml`];
}

function variableProblems(_: Values, _inputs: Inputs, env: Environment): string[] {
  const problems: string[] = [];
  if (env.EBB_API_KEY && env.EBB_API_KEY_FILE) {
    problems.push('EBB_API_KEY, EBB_API_KEY_FILE: both are set; unset one of them');
  }
  if (env.EBB_TOKEN && !isBearerToken(env.EBB_TOKEN)) {
    problems.push(`EBB_TOKEN: must be ${BEARER_TOKEN_FORM}; make one with: openssl rand -hex 32`);
  }
  return problems;
}

function teamProblems({ login, teams }: Values, inputs: Inputs): string[] {
  const problems = login ? unknownTeams(login, Object.keys(teams)) : [];
  return problems.map((problem) => `${inputs.get('login')?.where}: login: ${problem}`);
}

/** Receivers on origins that are not allowed. Secret URLs are checked when they are read. */
function receiverProblems({ notify, audit, notify_allowed_origins: allowedOrigins }: Values, inputs: Inputs): string[] {
  const receivers = Object.entries(notify).map(([name, { to, url }]) => {
    return { to, url, label: `${inputs.get('notify')?.where}: the receiver ${name}` };
  });
  const { url: auditUrl } = audit?.webhook ?? {};
  const webhook = { to: 'webhook', url: auditUrl, label: `${inputs.get('audit')?.where}: audit: webhook` } as const;
  return [...receivers, webhook].flatMap(({ label, to, url }) => {
    const refused = url === undefined ? undefined : destinationRefused(url, { to, allowedOrigins });
    return refused === undefined ? [] : [`${label}: ${refused}`];
  });
}

/** Reports keys beside `accounts` that no account names. */
function unusedKeys({ accounts }: Values, inputs: Inputs, env: Environment): string[] {
  if (accounts === undefined) return [];
  const where = inputs.get('accounts')?.where;
  const problems: string[] = [];
  if (env.EBB_API_KEY && !accounts.some(({ api_key_env: variable }) => variable === 'EBB_API_KEY')) {
    problems.push(
      `EBB_API_KEY: is set, but no entry of accounts (${where}) uses it; write api_key_env: EBB_API_KEY there, or unset it`,
    );
  }
  const file = inputs.get('api_key_file');
  if (file !== undefined) {
    const name = file.source === 'file' ? 'api_key_file stands' : 'is set';
    problems.push(
      `${file.where}: ${name} beside accounts (${where}); write api_key_file in one of them, and remove this`,
    );
  }
  return problems;
}

/** Keys may always be sent to the vendor's API. */
const VENDOR_ORIGIN = 'https://console.neon.tech';

/**
 * Reports hosts that keys must not be sent to. `ebb.yaml` is found in the working folder, which may be a checkout of somebody else's branch: it
 * must not send a key of this machine to a host of its choice. `NEON_API_KEY`, which other tools use, is only sent to the vendor or this machine.
 */
function keyDestinationProblems(
  { api_url: apiUrl, accounts, api_key_file: keyFile }: Values,
  inputs: Inputs,
  env: Environment,
): string[] {
  const { origin, hostname } = new URL(apiUrl);
  if (origin === VENDOR_ORIGIN || isLoopbackHost(hostname)) return [];
  const { where, source } = inputs.get('api_url') ?? {};
  if (env.EBB_API_KEY || keyFile !== undefined || accounts !== undefined) {
    if (source !== 'file') return [];
    return [
      `${where}: api_url would send API keys to ${origin}, which a file may not decide: set EBB_API_URL=${apiUrl}, or give --api-url`,
    ];
  }
  if (!env.NEON_API_KEY) return [];
  return [
    `NEON_API_KEY: goes to ${VENDOR_ORIGIN} or this machine only, and ${where} says ${origin}; set EBB_API_KEY to the key for it`,
  ];
}
