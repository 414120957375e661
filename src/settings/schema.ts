import { delimiter } from 'node:path';
import { z } from 'zod';
import type { Result } from '../common/result.ts';
import { DAY_MS } from '../domain/time/units.ts';
import { Disruption, ManualChanges } from '../policy/schema/policy-base.ts';
import { duration } from '../policy/schema/scalars.ts';
import { Source } from '../policy/schema/source.ts';
import { type KnownSources, toSource, withTokenPermission } from '../policy/sources.ts';
import { accountsSchema, connectionProfileSchema, planSchema, pricesSchema, verifiedSchema } from './account-schema.ts';
import { parseApiUrl, parseListenAddress, parseQueueUrl } from './addresses.ts';
import { auditSchema } from './audit-schema.ts';
import { loginSchema } from './login-schema.ts';
import { notifyBeforeSchema, notifySchema } from './notify-schema.ts';
import { keyPath, listOrText, oneOf, text } from './schema-parts.ts';
import { teamsSchema } from './team-schema.ts';

const ORIGIN_FORM = 'must be an origin such as https://prometheus.example:9090, without a path';

/** An origin, normalized. */
const origin = text().transform((value, context) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isOrigin = url !== undefined && /^https?:$/.test(url.protocol) && /^https?:\/\/[^/?#@]+\/?$/i.test(value);
  if (isOrigin) return url.origin;
  context.addIssue({ code: 'custom', message: ORIGIN_FORM });
  return z.NEVER;
});

/** `sources` of `ebb.yaml`, as in a policy file. */
const sourcesSchema = z.record(z.string(), Source, { error: 'must be a mapping of names to sources' });

/** `sources_allowed_origins` and `notify_allowed_origins` of `ebb.yaml`. */
const allowedOriginsSchema = listOrText(origin, 'must be a list of origins');

/**
 * The sources in the settings file. Tokens are only sent to `tokenOrigins`, which come from the environment, since anybody can write a file
 * that is checked out here.
 */
export function knownSourcesOf(
  sources: z.output<typeof sourcesSchema>,
  allowedOrigins: readonly string[],
  { file, tokenOrigins }: { file: string; tokenOrigins: readonly string[] },
): KnownSources {
  const named = Object.entries(sources).map(
    ([name, source]) => [name, withTokenPermission(toSource(name, file, source), tokenOrigins)] as const,
  );
  return { sources: new Map(named), allowedOrigins, tokenOrigins };
}

export const MODES = ['observe', 'enforce'] as const;
export const LOG_FORMATS = ['json', 'text'] as const;
const STAGING = ['auto', 'always'] as const;
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** The group becomes part of the Redis prefix, and of the name of the Postgres schema. */
const GROUP_NAME = /^[a-z0-9][a-z0-9_-]{0,39}$/;

/** A text that `parse` must accept; the output is what `parse` returns. */
function parsedBy<T>(parse: (value: string) => Result<T>) {
  return text().transform((value, context): T => {
    const parsed = parse(value);
    if (parsed.ok) return parsed.value;
    context.addIssue({ code: 'custom', message: parsed.problem });
    return z.NEVER;
  });
}

/** The name of a host, as browsers send it. */
const hostName = text()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/, {
    error: 'must be a name such as ebb.internal, without a scheme and a port',
  })
  .transform((name) => name.toLowerCase());

const REQUESTS_FORM = 'must be a whole number from 60 to 1000000';

const STATUS_URL_FORM = 'must be a URL such as https://ebb.example, without user, password and query';

const RESERVE_FORM = 'must be a share from "0%" to "90%"';

function yesOrNo() {
  return z.boolean({ error: 'must be true or false' });
}

/**
 * The strict schema of `ebb.yaml`. Variables and flags are merged into the file's values before parsing, so that all sources obey the same rules.
 * {@link SETTINGS} has the meaning of each key, and its variable and flag.
 */
export const settingsSchema = z.strictObject({
  mode: oneOf(MODES).default('observe'),
  api_url: parsedBy(parseApiUrl).prefault('https://console.neon.tech/api/v2'),
  allow_plain_http: yesOrNo().default(false),
  api_requests_per_minute: z
    .int({ error: REQUESTS_FORM })
    .min(60, { error: REQUESTS_FORM })
    .max(1_000_000, { error: REQUESTS_FORM })
    .default(700),
  api_reserve: z
    .string({ error: RESERVE_FORM })
    .regex(/^([0-9]|[1-8][0-9]|90)%$/, { error: RESERVE_FORM })
    .transform((share) => Number(share.slice(0, -1)) / 100)
    .prefault('5%'),
  api_key_file: keyPath().optional(),
  accounts: accountsSchema.optional(),
  plan: planSchema.optional(),
  profile: connectionProfileSchema.prefault('specification'),
  verified: verifiedSchema.default({}),
  prices: pricesSchema.prefault({}),
  owners: z.record(z.string().min(1), text(), { error: 'must map globs to owners' }).default({}),
  cold_start_worth: z
    .record(z.string().min(1), duration({ minMs: 1000, maxMs: DAY_MS, text: '1s to 1d' }), {
      error: 'must map globs to durations',
    })
    .default({}),
  policies: z
    .union([text().transform(splitPolicyPaths), z.array(text())], { error: 'must be a path or a list of paths' })
    .refine((paths) => paths.length > 0, { error: 'names no path; write a file, folder or glob' })
    .prefault('policies'),
  teams: teamsSchema.default({}),
  sources: sourcesSchema.default({}),
  sources_allowed_origins: allowedOriginsSchema.default([]),
  notify: notifySchema.default({}),
  notify_allowed_origins: allowedOriginsSchema.default([]),
  notify_before: notifyBeforeSchema.optional(),
  status_url: text()
    .regex(/^https?:\/\/[^\s/?#@]+(?:\/[^\s?#@]*)?$/i, { error: STATUS_URL_FORM })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
  staging: oneOf(STAGING).default('auto'),
  disruption: Disruption.default({}),
  manual_changes: ManualChanges.optional(),
  queue_url: parsedBy(parseQueueUrl).prefault('embedded:.ebb'),
  state_dir: text().prefault('.ebb'),
  group: text()
    .regex(GROUP_NAME, { error: 'must be 1 to 40 lower-case letters, digits, "-" or "_", the first a letter or digit' })
    .optional(),
  revision: text().max(200, { error: 'must be at most 200 characters' }).optional(),
  listen: parsedBy(parseListenAddress).prefault('127.0.0.1:9464'),
  http_hosts: listOrText(hostName, 'must be a list of names').default([]),
  token_file: keyPath().optional(),
  login: loginSchema.optional(),
  audit: auditSchema.optional(),
  log_level: oneOf(LOG_LEVELS).default('info'),
  log_format: oneOf(LOG_FORMATS).optional(),
  per_compute_metrics: yesOrNo().default(true),
});

export type SettingName = keyof z.input<typeof settingsSchema>;

/** Splits a list of files, folders and globs at commas and at the system's path separator, but not inside `{a,b}`. */
export function splitPolicyPaths(text: string): string[] {
  const separators = new RegExp(`[,${delimiter}](?![^{]*\\})`);
  return text
    .split(separators)
    .map((path) => path.trim())
    .filter((path) => path !== '');
}
