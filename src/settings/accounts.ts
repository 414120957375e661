import { resolve } from 'node:path';
import type { z } from 'zod';
import type { AccountFacts } from '../domain/compute/account-facts.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import type { ConnectionProfile } from '../domain/connections/connection-profile.ts';
import type { ApiKeySource, KeyFolder } from './api-key.ts';
import type { SettingName, settingsSchema } from './schema.ts';
import { secret } from './secret.ts';
import type { Environment, Given } from './sources.ts';

/** Whose projects are looked at, and by which key. */
export interface Account {
  name: string;
  /** Absent: no key was given. `readApiKey` has the remedy. */
  apiKey: ApiKeySource | KeyFolder | undefined;
  /** The organization whose projects these must be. */
  organization?: string;
  /** Its plan, if the settings say so. */
  plan?: AccountPlan;
  /** The connections that its computes accept at a size. */
  profile: ConnectionProfile;
  /** What `ebb verify` has measured of the control API for it. */
  verified: AccountFacts;
}

interface Sources {
  values: z.output<typeof settingsSchema>;
  given: ReadonlyMap<SettingName, Given>;
  env: Environment;
  cwd: string;
}

/** The account of that name; one that the settings don't know, of a fleet file say, is as the only one that they have. */
export function accountFor(accounts: readonly Account[], name: string): Account | undefined {
  return accounts.find((account) => account.name === name) ?? (accounts.length === 1 ? accounts[0] : undefined);
}

/** The name of the account where there is no `accounts`. */
const ONLY_ACCOUNT = 'default';

/** The accounts of `ebb.yaml`, or the only one, whose key is in the usual variables. */
export function accountsOf(sources: Sources): readonly Account[] {
  const { values, given, env, cwd } = sources;
  if (values.accounts === undefined) {
    return [{ name: ONLY_ACCOUNT, apiKey: onlyKey(sources), ...platformOf(values, {}) }];
  }
  const base = given.get('accounts')?.base ?? cwd;
  return values.accounts.map(({ name, organization, plan, profile, verified, ...key }) => ({
    name,
    apiKey: keyOf(name, key, { base, env }),
    ...(organization !== undefined && { organization }),
    ...platformOf(values, { plan, profile, verified }),
  }));
}

/** An account's missing fields are those of the settings. */
function platformOf(
  values: Sources['values'],
  own: Pick<Entry, 'plan' | 'profile' | 'verified'>,
): Pick<Account, 'plan' | 'profile' | 'verified'> {
  const plan = own.plan ?? values.plan;
  return {
    ...(plan !== undefined && { plan }),
    profile: own.profile ?? values.profile,
    verified: { ...values.verified, ...own.verified },
  };
}

type Entry = NonNullable<Sources['values']['accounts']>[number];
type KeyPlace = Pick<Entry, 'api_key_env' | 'api_key_file' | 'api_keys_folder'>;

function keyOf(
  name: string,
  { api_key_env: variable, api_key_file: file, api_keys_folder: folder }: KeyPlace,
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
