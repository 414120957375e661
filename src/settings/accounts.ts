import { resolve } from 'node:path';
import type { z } from 'zod';
import type { ApiKeySource, KeyFolder } from './api-key.ts';
import type { SettingName, settingsSchema } from './schema.ts';
import { secret } from './secret.ts';
import type { Environment, Given } from './sources.ts';

/** Whose projects are looked at, and by which key. */
export interface Account {
  name: string;
  /** Absent: no key was given. `readApiKey` says what to do. */
  apiKey: ApiKeySource | KeyFolder | undefined;
  /** The organization whose projects these must be. */
  organization?: string;
}

interface Sources {
  values: z.output<typeof settingsSchema>;
  given: ReadonlyMap<SettingName, Given>;
  env: Environment;
  cwd: string;
}

/** What the account is called when there is no `accounts`. */
const ONLY_ACCOUNT = 'default';

/** The accounts of `ebb.yaml`, or the only one, whose key is in the usual variables. */
export function accountsOf(sources: Sources): readonly Account[] {
  const { values, given, env, cwd } = sources;
  if (values.accounts === undefined) return [{ name: ONLY_ACCOUNT, apiKey: onlyKey(sources) }];
  const base = given.get('accounts')?.base ?? cwd;
  return values.accounts.map(({ name, organization, ...key }) => ({
    name,
    apiKey: keyOf(name, key, { base, env }),
    ...(organization !== undefined && { organization }),
  }));
}

type Entry = NonNullable<Sources['values']['accounts']>[number];

function keyOf(
  name: string,
  { api_key_env: variable, api_key_file: file, api_keys_folder: folder }: Omit<Entry, 'name'>,
  { base, env }: { base: string; env: Environment },
): Account['apiKey'] {
  const where = `account ${name}`;
  if (folder !== undefined) return { from: 'folder', folder: resolve(base, folder) };
  if (file !== undefined) return { from: 'file', file: resolve(base, file), where };
  if (variable === undefined) return undefined;
  const value = env[variable];
  return { from: 'variable', variable, key: value ? secret(value) : undefined };
}

function onlyKey({ values, given, env, cwd }: Sources): ApiKeySource | undefined {
  if (env.EBB_API_KEY) return { from: 'variable', variable: 'EBB_API_KEY', key: secret(env.EBB_API_KEY) };
  if (values.api_key_file !== undefined) {
    const { base = cwd, where = 'api_key_file' } = given.get('api_key_file') ?? {};
    return { from: 'file', file: resolve(base, values.api_key_file), where };
  }
  if (env.NEON_API_KEY) return { from: 'variable', variable: 'NEON_API_KEY', key: secret(env.NEON_API_KEY) };
  return undefined;
}
