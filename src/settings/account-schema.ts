import { z } from 'zod';
import { connectionProfileSchema } from './connection-profile-schema.ts';
import { planSchema } from './plan-schema.ts';
import { keyPath, text } from './schema-parts.ts';

/** Names are labels of metrics and what selectors match: nothing that a glob or a path would take for its own. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;

/** A file that others may change must not get at any other variable of the process. */
const KEY_VARIABLE = /^EBB_API_KEY(?:_[A-Z0-9_]+)?$/;

const KEY_PLACES = ['api_key_env', 'api_key_file', 'api_keys_folder'] as const;

const shape = {
  name: text().regex(NAME, {
    error: 'must be 1 to 40 letters, digits, "-", "_" or ".", the first a letter or digit',
  }),
  api_key_env: text()
    .regex(KEY_VARIABLE, { error: 'must be the name of a variable: EBB_API_KEY, or EBB_API_KEY_ and more capitals' })
    .refine((name) => name !== 'EBB_API_KEY_FILE', { error: 'names a variable that holds a path: use api_key_file' })
    .optional(),
  api_key_file: keyPath().optional(),
  api_keys_folder: keyPath().optional(),
  organization: text().optional(),
  plan: planSchema.optional(),
  profile: connectionProfileSchema.optional(),
};

/** The keys of an entry of `accounts`. */
export const ACCOUNT_KEYS: readonly string[] = Object.keys(shape);

/** `accounts` of `ebb.yaml`. */
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
