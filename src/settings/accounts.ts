import { resolve } from 'node:path';
import type { z } from 'zod';
import type { Result } from '../common/result.ts';
import type { AccountFacts } from '../domain/compute/account-facts.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import type { ConnectionProfile } from '../domain/connections/connection-profile.ts';
import type { ApiKeySource, KeyFolder } from './api-key.ts';
import type { settingsSchema } from './schema.ts';
import { secret } from './secret.ts';
import type { Environment, Inputs } from './sources.ts';

export interface Account {
  name: string;
  /** Undefined if the settings name no key; then `readApiKey` returns the remedy. */
  apiKey: ApiKeySource | KeyFolder | undefined;
  /** If given, only the projects of this organization are listed. */
  organization?: string;
  plan?: AccountPlan;
  /** How many connections a compute of each size accepts. */
  profile: ConnectionProfile;
  /** The facts that `ebb verify` has measured. */
  verified: AccountFacts;
}

/** The parsed values of the settings, and where they come from. */
export interface SettingsContext {
  values: z.output<typeof settingsSchema>;
  inputs: Inputs;
  env: Environment;
  cwd: string;
}

/** The account with this name. If the settings have only one account, this one is also meant by other names, such as names in a fleet file. */
export function accountFor(accounts: readonly Account[], name: string): Account | undefined {
  return accounts.find((account) => account.name === name) ?? (accounts.length === 1 ? accounts[0] : undefined);
}

/** Chooses the account of a command. If several fit, the problem asks which one `predicate`, such as `has the project`. */
export function chooseAccount(
  accounts: readonly Account[],
  wanted: string | undefined,
  predicate: string,
): Result<Account> {
  const names = accounts.map(({ name }) => name).join(', ');
  if (wanted === undefined && accounts.length > 1)
    return { ok: false, problem: `there are several accounts: say with --account which one ${predicate} (${names})` };
  const account = wanted === undefined ? accounts[0] : accounts.find(({ name }) => name === wanted);
  if (account) return { ok: true, value: account };
  return { ok: false, problem: `there is no account ${wanted}: use one of ${names}` };
}

/** The name of the only account if the settings have no `accounts`. */
const ONLY_ACCOUNT = 'default';

/** The accounts of `ebb.yaml`, or else one account with the key of {@link onlyKey}. */
export function accountsOf(context: SettingsContext): readonly Account[] {
  const { values, inputs, env, cwd } = context;
  if (values.accounts === undefined) {
    return [{ name: ONLY_ACCOUNT, apiKey: onlyKey(context), ...accountSettings(values, {}) }];
  }
  const base = inputs.get('accounts')?.base ?? cwd;
  return values.accounts.map(({ name, organization, plan, profile, verified, ...key }) => ({
    name,
    apiKey: keyOf(name, key, { base, env }),
    ...(organization !== undefined && { organization }),
    ...accountSettings(values, { plan, profile, verified }),
  }));
}

/** The settings of an account. The global settings are their defaults. */
function accountSettings(
  values: SettingsContext['values'],
  overrides: Pick<Entry, 'plan' | 'profile' | 'verified'>,
): Pick<Account, 'plan' | 'profile' | 'verified'> {
  const plan = overrides.plan ?? values.plan;
  return {
    ...(plan !== undefined && { plan }),
    profile: overrides.profile ?? values.profile,
    verified: { ...values.verified, ...overrides.verified },
  };
}

type Entry = NonNullable<SettingsContext['values']['accounts']>[number];
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

/** The key without `accounts`: from EBB_API_KEY, else from the file in `api_key_file`, else from NEON_API_KEY. */
function onlyKey({ values, inputs, env, cwd }: SettingsContext): ApiKeySource | undefined {
  if (env.EBB_API_KEY) return { from: 'variable', variable: 'EBB_API_KEY', key: secret(env.EBB_API_KEY) };
  if (values.api_key_file !== undefined) {
    const { base = cwd, where = 'api_key_file' } = inputs.get('api_key_file') ?? {};
    return { from: 'file', file: resolve(base, values.api_key_file), where };
  }
  if (env.NEON_API_KEY) return { from: 'variable', variable: 'NEON_API_KEY', key: secret(env.NEON_API_KEY) };
  return undefined;
}
