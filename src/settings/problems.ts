import type { z } from 'zod';
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
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(key, config));
    const name = String(issue.path[0]) as SettingName;
    const { source, where } = given.get(name) ?? { source: 'file', where: config.file ?? 'settings' };
    return [source === 'file' ? `${where}: ${name} ${issue.message}` : `${where}: ${issue.message}`];
  });
}

function unknownKey(key: string, config: ConfigFile): string {
  const where = config.places.get(key) ?? config.file;
  const misplaced = MISPLACED_KEYS.get(key);
  if (misplaced !== undefined) return `${where}: ${key}: ${misplaced}`;
  return `${where}: unknown setting "${key}"${didYouMean(key, Object.keys(SETTINGS)) || '; see docs/settings.md'}`;
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
  return problems;
}
