import { z } from 'zod';
import { ACCOUNT_FACTS } from '../domain/compute/account-facts.ts';
import { isAllowedSize, nearestSizesText } from '../domain/compute/compute-units.ts';
import { ACCOUNT_PLANS, DEFAULT_PRICES } from '../domain/compute/cost.ts';
import { CONNECTION_PROFILES, type ConnectionProfile, tableProfile } from '../domain/connections/connection-profile.ts';
import { keyPath, nameText, oneOf, text, variableName } from './schema-parts.ts';

export const planSchema = oneOf(ACCOUNT_PLANS);

const DOLLARS_FORM = 'must be US dollars for a CU-hour, such as 0.106';
const price = z.number({ error: DOLLARS_FORM }).min(0, { error: DOLLARS_FORM }).max(1000, { error: DOLLARS_FORM });

/** `prices` of `ebb.yaml`; a missing plan has its default price. */
export const pricesSchema = z.strictObject(
  {
    free: price.default(DEFAULT_PRICES.free),
    launch: price.default(DEFAULT_PRICES.launch),
    scale: price.default(DEFAULT_PRICES.scale),
  },
  { error: 'must be a price for each plan: {launch: 0.106, scale: 0.222}' },
);

const PROFILE_FORM = 'must be specification, vendor-2026, or {max_connections: {1: 450, …}, reserved: 0}';
const ROWS_FORM = 'must be a table of sizes in CU and their connections: {1: 450, 2: 901}';
const MAX_CONNECTIONS = 1_000_000;

const count = z
  .int({ error: 'must be a whole number of connections' })
  .min(0, { error: 'must not be negative' })
  .max(MAX_CONNECTIONS, { error: `must be ${MAX_CONNECTIONS} at most` });

const byCu = z
  .record(z.string(), count, { error: ROWS_FORM })
  .refine((rows) => Object.keys(rows).length > 0, { error: 'must have at least one size' })
  .superRefine((rows, context) => {
    for (const size of Object.keys(rows).filter((one) => !isAllowedSize(Number(one)))) {
      const message = `is not a size in CU${nearestSizesText(Number(size))}`;
      context.addIssue({ code: 'custom', path: [size], message });
    }
  })
  .transform((rows) => new Map(Object.entries(rows).map(([size, connections]) => [Number(size), connections])));

const table = z.strictObject({ max_connections: byCu, reserved: count.default(0) }, { error: PROFILE_FORM });

const VERIFIED_FORM = 'must be what ebb verify has found, such as {idle_resize: stays}';

/** `verified` of `ebb.yaml`: the measured facts of the control API. */
export const verifiedSchema = z.strictObject(
  {
    idle_resize: oneOf(ACCOUNT_FACTS.idle_resize).exactOptional(),
    timeout_change: oneOf(ACCOUNT_FACTS.timeout_change).exactOptional(),
    list_updated_at: oneOf(ACCOUNT_FACTS.list_updated_at).exactOptional(),
    compute_updated_at: oneOf(ACCOUNT_FACTS.compute_updated_at).exactOptional(),
    last_active: oneOf(ACCOUNT_FACTS.last_active).exactOptional(),
    restart_drops: oneOf(ACCOUNT_FACTS.restart_drops).exactOptional(),
    limits: oneOf(ACCOUNT_FACTS.limits).exactOptional(),
  },
  { error: VERIFIED_FORM },
);

/** Names of profiles in 0.1.0. They are still accepted, with a warning: CHANGELOG.md. */
const FORMER_NAMES = { seed: 'specification', current: 'vendor-2026' } as const;

const names = z.literal(['specification', 'vendor-2026']);
const formerNames = z.literal(['seed', 'current']).transform((name) => FORMER_NAMES[name]);

/** `profile` of `ebb.yaml`: how many connections each size accepts. */
export const connectionProfileSchema = z
  .union([names, formerNames.meta({ deprecated: true }), table], { error: PROFILE_FORM })
  .transform((profile): ConnectionProfile => {
    if (typeof profile === 'string') return CONNECTION_PROFILES[profile];
    return tableProfile({ name: 'table', byCu: profile.max_connections, reserved: profile.reserved });
  });

/** One warning for each profile that is given by its former name. */
export function formerProfileWarnings({ profile, accounts }: Readonly<Record<string, unknown>>): string[] {
  const ofAccounts = Array.isArray(accounts) ? accounts.map((account) => account?.profile) : [];
  const profiles = new Set([profile, ...ofAccounts]);
  const former = (['seed', 'current'] as const).filter((name) => profiles.has(name));
  return former.map((name) => `the profile ${name} is now called ${FORMER_NAMES[name]}: change it in the settings`);
}

const KEY_PLACES = ['api_key_env', 'api_key_file', 'api_keys_folder'] as const;

const shape = {
  name: nameText(),
  api_key_env: variableName('EBB_API_KEY')
    .refine((name) => name !== 'EBB_API_KEY_FILE', { error: 'names a variable that holds a path: use api_key_file' })
    .optional(),
  api_key_file: keyPath().optional(),
  api_keys_folder: keyPath().optional(),
  organization: text().optional(),
  plan: planSchema.optional(),
  profile: connectionProfileSchema.optional(),
  verified: verifiedSchema.optional(),
};

export const ACCOUNT_FIELDS: readonly string[] = Object.keys(shape);

export const accountsSchema = z
  .array(
    z
      .strictObject(shape, { error: 'must be a name and where the key is' })
      .refine((account) => KEY_PLACES.filter((place) => account[place] !== undefined).length === 1, {
        error: `must say in one way where the key is: ${KEY_PLACES.join(', ')}`,
      }),
    { error: 'must be a list of accounts' },
  )
  .min(1, { error: 'names no account; leave it out to use EBB_API_KEY' })
  .superRefine((accounts, context) => {
    const names = accounts.map(({ name }) => name);
    const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
    if (twice < 0) return;
    context.addIssue({ code: 'custom', path: [twice, 'name'], message: `"${names[twice]}" is there twice` });
  });
