import type { z } from 'zod';
import { ACCOUNT_KEYS } from './account-schema.ts';
import { isPlainAndRemote } from './api-url.ts';
import type { ConfigFile } from './config-file.ts';
import { MISPLACED_KEYS, SETTINGS } from './declarations.ts';
import { didYouMean } from './did-you-mean.ts';
import type { SettingName, settingsSchema } from './schema.ts';
import type { Environment, Given } from './sources.ts';

type Values = z.output<typeof settingsSchema>;
type Sources = ReadonlyMap<SettingName, Given>;

const TOKEN = /^[\x21-\x7e]{16,}$/;

/** What the schema found, one line each: where, what, what to do. */
export function schemaProblems(error: z.ZodError, given: Sources, config: ConfigFile): string[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key, config));
    const { source, where } = given.get(path[0] as SettingName) ?? { source: 'file', where: config.file ?? 'settings' };
    if (source !== 'file') return [`${where}: ${issue.message}`];
    return [`${placeOf(path, config) ?? where}: ${labelOf(path)} ${issue.message}`];
  });
}

/** Of the setting itself, or of the entry that it is missing in. */
function placeOf(path: readonly string[], { places }: ConfigFile): string | undefined {
  const upwards = path.map((_, index) => path.slice(0, path.length - index).join('.'));
  return upwards.map((one) => places.get(one)).find((place) => place !== undefined);
}

function labelOf(path: readonly string[]): string {
  const [last = '', list = ''] = path.toReversed();
  return /^\d+$/.test(last) ? `entry ${Number(last) + 1} of ${list}` : last;
}

function unknownKey(path: readonly string[], key: string, config: ConfigFile): string {
  const [list] = path;
  const where = placeOf([...path, key], config) ?? config.file;
  const misplaced = MISPLACED_KEYS.get(list === undefined ? key : `${list}.${key}`);
  if (misplaced !== undefined) return `${where}: ${key}: ${misplaced}`;
  const known = list === undefined ? Object.keys(SETTINGS) : ACCOUNT_KEYS;
  return `${where}: unknown setting "${key}"${didYouMean(key, known) || '; see docs/settings.md'}`;
}

/** What is wrong only in combination: where a secret stands, where it would go, which of two counts. */
export function combinationProblems(values: Values, given: Sources, env: Environment): string[] {
  const problems: string[] = [];
  const queue = given.get('queue_url');
  if (values.queue_url.passwords.length > 0 && queue !== undefined && queue.source !== 'variable') {
    const seenBy = queue.source === 'flag' ? 'the command line, where other users see it' : 'a file that others read';
    problems.push(`${queue.where}: a password has no place in ${seenBy}; set EBB_QUEUE_URL instead`);
  }
  if (isPlainAndRemote(values.api_url) && !values.allow_plain_http) {
    const where = given.get('api_url')?.where;
    problems.push(
      `${where}: http would send the API key unencrypted; use https, or set allow_plain_http: true in ebb.yaml`,
    );
  }
  if (env.EBB_API_KEY && env.EBB_API_KEY_FILE) {
    problems.push('EBB_API_KEY, EBB_API_KEY_FILE: both are set; unset one of them');
  }
  if (env.EBB_TOKEN && !TOKEN.test(env.EBB_TOKEN)) {
    problems.push('EBB_TOKEN: must be at least 16 characters without blanks; make one with: openssl rand -hex 32');
  }
  return [...problems, ...homelessKeys(values, given, env)];
}

/** Beside `accounts`, a key that none of them names: whose it would be is not for us to guess. */
function homelessKeys({ accounts }: Values, given: Sources, env: Environment): string[] {
  if (accounts === undefined) return [];
  const where = given.get('accounts')?.where;
  const problems: string[] = [];
  if (env.EBB_API_KEY && !accounts.some(({ api_key_env: variable }) => variable === 'EBB_API_KEY')) {
    problems.push(
      `EBB_API_KEY: is set, but no entry of accounts (${where}) uses it; write api_key_env: EBB_API_KEY there, or unset it`,
    );
  }
  const file = given.get('api_key_file');
  if (file !== undefined) {
    const name = file.source === 'file' ? 'api_key_file stands' : 'is set';
    problems.push(
      `${file.where}: ${name} beside accounts (${where}); write api_key_file in one of them, and remove this`,
    );
  }
  return problems;
}
