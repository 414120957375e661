import type { SettingName } from './schema.ts';

export interface SettingDeclaration {
  /** The variable that overrides `ebb.yaml`. */
  variable?: string;
  /** The flag that overrides both. */
  flag?: string;
  /** As it would be written in `ebb.yaml`. */
  fallback: string;
  help: string;
}

/** Every key of `ebb.yaml`. docs/settings.md and ebb.example.yaml are made of it. */
export const SETTINGS = {
  mode: {
    variable: 'EBB_MODE',
    flag: '--mode',
    fallback: 'observe',
    help: 'observe: nothing is written, logs and metrics say what would be. enforce: computes are changed.',
  },
  api_url: {
    variable: 'EBB_API_URL',
    flag: '--api-url',
    fallback: 'https://console.neon.tech/api/v2',
    help: 'Base URL of the control API, up to and with /api/v2.',
  },
  allow_plain_http: {
    fallback: 'false',
    help: 'Allows an http API URL that does not point to this machine. The key then crosses the network unencrypted.',
  },
  api_requests_per_minute: {
    fallback: '700',
    help: 'What the control API allows an account in a minute, over all routes. More only where the vendor has granted more.',
  },
  api_key_file: {
    variable: 'EBB_API_KEY_FILE',
    fallback: '',
    help: 'File that holds the API key and nothing else. A key itself never stands in ebb.yaml: set EBB_API_KEY instead.',
  },
  accounts: {
    fallback: '',
    help: 'Several accounts instead of one: for each a name, where its key is, and the organization that it is for, its plan and its profile. See "Several accounts" in docs/settings.md.',
  },
  plan: {
    fallback: '',
    help: 'free, launch or scale: what the accounts have subscribed to that do not say so themselves. It prices forecasts.',
  },
  profile: {
    fallback: 'seed',
    help: 'How many connections a size accepts, for accounts that do not say so themselves: seed, current, or a table. See "Plans, prices, connections" in docs/settings.md.',
  },
  prices: {
    fallback: '{ free: 0, launch: 0.106, scale: 0.222 }',
    help: 'US dollars for a CU-hour, by plan. One that is left out stays as it is here.',
  },
  policies: {
    variable: 'EBB_POLICIES',
    flag: '--policies',
    fallback: 'policies',
    help: 'Policy files, folders and globs: a list, or one text with commas between them. Relative to the file that says so, else to the working folder.',
  },
  sources: {
    fallback: '',
    help: 'Where counts of connections come from, by name, for all policy files. The same keys as in a policy file.',
  },
  sources_allowed_origins: {
    fallback: '[]',
    help: 'Origins, such as http://prometheus:9090, that sources in policy files may ask. Those defined under sources need no entry.',
  },
  disruption: {
    fallback: '',
    help: 'When changes that disconnect clients may be made, where the policies do not say. The same keys as in a policy.',
  },
  manual_changes: {
    fallback: '',
    help: 'What happens to what a person has set, where the policies do not say: respect, revert, or {respect_for: 2h}.',
  },
  queue_url: {
    variable: 'EBB_QUEUE_URL',
    flag: '--queue-url',
    fallback: 'embedded:.ebb',
    help: 'Where queue and store live: embedded:DIR (one daemon, nothing to install), redis://, also by Sentinels or a Cluster (several daemons), postgres://. One with a password only as EBB_QUEUE_URL.',
  },
  group: {
    variable: 'EBB_GROUP',
    fallback: '',
    help: 'Keeps fleets apart that share a Redis or Postgres; daemons of one fleet have the same. Default: a hash of API URL and accounts. Two keys of different organizations on one Redis need two groups.',
  },
  revision: {
    variable: 'EBB_REVISION',
    fallback: '',
    help: 'What the policies were made from, such as a Git commit: it stands in the log of every change. At most 200 characters.',
  },
  listen: {
    variable: 'EBB_LISTEN',
    flag: '--listen',
    fallback: '127.0.0.1:9464',
    help: 'HOST:PORT of /metrics, /healthz, /readyz and the status page. Beyond this machine it needs EBB_TOKEN, token_file, or the flag --insecure.',
  },
  token_file: {
    variable: 'EBB_TOKEN_FILE',
    fallback: '',
    help: 'File of tokens that the pages then ask for, a line for each person: NAME: TOKEN. Read anew when it changes. See "Listening beyond this machine" in docs/settings.md.',
  },
  log_level: {
    variable: 'EBB_LOG_LEVEL',
    fallback: 'info',
    help: 'debug, info, warn or error.',
  },
  per_compute_metrics: {
    fallback: 'true',
    help: 'Exports series for each compute (state, sizes, timeout). Switch it off where thousands of computes would be too many series.',
  },
} as const satisfies Record<SettingName, SettingDeclaration>;

/** Variables that have no place in `ebb.yaml`, because they are secrets. */
export const SECRET_VARIABLES = {
  EBB_API_KEY: 'The API key.',
  NEON_API_KEY:
    'Read when there is no other key, for reading only: observe and the commands that show. Writing needs EBB_API_KEY or a key file.',
  'EBB_DSN_…': 'Connection strings that sources of counts name as dsn_env.',
  'EBB_PROMETHEUS_TOKEN…': 'Bearer tokens that sources of counts name as token_env.',
  EBB_TOKEN:
    'Bearer token, at least 16 characters, that every page but /healthz then asks for; commands send it with --url. For tokens of several people: token_file.',
} as const;

/** What to do instead of writing these into `ebb.yaml`. */
export const MISPLACED_KEYS: ReadonlyMap<string, string> = new Map([
  ['api_key', 'a key has no place in a file that others read: set EBB_API_KEY, or api_key_file'],
  ['accounts.api_key', 'a key has no place in a file that others read: set api_key_env, or api_key_file'],
  ['token', 'a token has no place in a file that others read: set EBB_TOKEN, or token_file'],
]);
