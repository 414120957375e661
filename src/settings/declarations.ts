import { z } from 'zod';
import { type SettingName, settingsSchema } from './schema.ts';

export interface SettingDeclaration {
  /** The variable that overrides `ebb.yaml`. */
  variable?: string;
  /** The flag that overrides `ebb.yaml` and the variable. */
  flag?: string;
  /** The default, written as in `ebb.yaml`. */
  fallback: string;
  help: string;
}

/** Every key of `ebb.yaml`. docs/settings.md and ebb.example.yaml are generated from it. */
export const SETTINGS = {
  mode: {
    variable: 'EBB_MODE',
    flag: '--mode',
    fallback: 'observe',
    help: 'observe: nothing is written; logs and metrics show what would be done. enforce: computes are changed.',
  },
  api_url: {
    variable: 'EBB_API_URL',
    flag: '--api-url',
    fallback: 'https://console.neon.tech/api/v2',
    help: 'Base URL of the control API, including /api/v2.',
  },
  allow_plain_http: {
    fallback: 'false',
    help: 'Allows an http API URL that does not point to this machine. The key is then sent unencrypted.',
  },
  api_requests_per_minute: {
    fallback: '700',
    help: 'Rate limit of the control API per account, over all routes. Raise it only if the vendor has granted more.',
  },
  api_reserve: {
    fallback: '5%',
    help: 'Share of the rate limits that ebb leaves to people, CI and Terraform on the same account, 0% to 90%.',
  },
  api_key_file: {
    variable: 'EBB_API_KEY_FILE',
    fallback: '',
    help: 'File that contains only the API key. The key itself is not allowed in ebb.yaml: set EBB_API_KEY instead.',
  },
  accounts: {
    fallback: '',
    help: 'Several accounts instead of one. See "Several accounts" in docs/settings.md.',
  },
  plan: {
    fallback: '',
    help: 'Plan of accounts without their own: free, launch or scale. Used for the prices of forecasts.',
  },
  profile: {
    fallback: 'specification',
    help: 'How many connections a size accepts: specification, vendor-2026, or a table. See "Plans, prices, connections" in docs/settings.md.',
  },
  verified: {
    fallback: '{}',
    help: 'What ebb verify has measured of the control API, by fact; anything else is assumed. See docs/verify.md.',
  },
  prices: {
    fallback: '{ free: 0, launch: 0.106, scale: 0.222 }',
    help: 'US dollars per CU-hour, by plan. A plan that is left out keeps its default.',
  },
  owners: {
    fallback: '{}',
    help: 'Who owns which usage: globs on projects, or on PROJECT/BRANCH, and an owner for each; the first match counts. See docs/cost.md.',
  },
  cold_start_worth: {
    fallback: '{}',
    help: 'What a start is worth, in time awake, when a timeout is recommended: the same globs as owners, and a duration of 1s to 1d for each. Otherwise 5m.',
  },
  policies: {
    variable: 'EBB_POLICIES',
    flag: '--policies',
    fallback: 'policies',
    help: 'Policy files, folders and globs: a list, or one text separated by commas.',
  },
  teams: {
    fallback: '{}',
    help: 'Which files belong to which team, and what they may do. See docs/how-to-teams.md.',
  },
  sources: {
    fallback: '',
    help: 'Connection sources by name, for all policy files. The same keys as in a policy file.',
  },
  sources_allowed_origins: {
    variable: 'EBB_SOURCES_ALLOWED_ORIGINS',
    fallback: '[]',
    help: 'Origins, such as http://prometheus:9090, that sources in policy files may query. Sources in the settings need none, unless they send a bearer token: then the variable must list the origin.',
  },
  notify: {
    fallback: '{}',
    help: 'Receivers of notifications about changes and problems, by name. See docs/how-to-notifications.md.',
  },
  notify_allowed_origins: {
    variable: 'EBB_NOTIFY_ALLOWED_ORIGINS',
    fallback: '[]',
    help: 'Origins, such as https://hooks.example, that receivers of notify may be on, besides this machine and incoming webhooks of Slack.',
  },
  notify_before: {
    fallback: '',
    help: 'Receivers are notified this long before a change that disconnects clients, 1m to 1d; not in advance if absent.',
  },
  status_url: {
    variable: 'EBB_STATUS_URL',
    fallback: '',
    help: 'Where people reach the status page, such as https://ebb.example: notifications link to it.',
  },
  staging: {
    variable: 'EBB_STAGING',
    fallback: 'auto',
    help: 'When a policy set that would disconnect many computes waits for ebb approve: auto, unless the control API is on this machine; or always, to practise it on the emulator.',
  },
  disruption: {
    fallback: '',
    help: 'When disruptive changes are allowed; policies override each key.',
  },
  manual_changes: {
    fallback: '',
    help: 'What happens to manual changes, unless a policy sets it: respect, revert, or {respect_for: 2h}.',
  },
  queue_url: {
    variable: 'EBB_QUEUE_URL',
    flag: '--queue-url',
    fallback: 'embedded:.ebb',
    help: 'Location of queue and store: embedded:DIR (one daemon, nothing to install), redis:// or postgres:// (several daemons). A URL with a password is only allowed in EBB_QUEUE_URL.',
  },
  state_dir: {
    variable: 'EBB_STATE_DIR',
    fallback: '.ebb',
    help: 'Local folder where a daemon on Redis or Postgres keeps a copy of holds and freezes, in case the store is lost.',
  },
  group: {
    variable: 'EBB_GROUP',
    fallback: '',
    help: 'Separates fleets that share a Redis or Postgres; all daemons of a fleet have the same group. Default: a hash of API URL and account names, so two organizations on one Redis need two groups.',
  },
  revision: {
    variable: 'EBB_REVISION',
    fallback: '',
    help: 'Version of the policies, such as a Git commit; logged with every change.',
  },
  listen: {
    variable: 'EBB_LISTEN',
    flag: '--listen',
    fallback: '127.0.0.1:9464',
    help: 'HOST:PORT of /metrics, /healthz, /readyz and the status page. Any address but a local one needs EBB_TOKEN, token_file, or the flag --insecure.',
  },
  http_hosts: {
    variable: 'EBB_HTTP_HOSTS',
    fallback: '[]',
    help: 'Host names that are accepted if no token is set, besides localhost, the host of listen, and IP addresses.',
  },
  token_file: {
    variable: 'EBB_TOKEN_FILE',
    fallback: '',
    help: 'File of tokens that the pages require, one line per person. See "Listening beyond this machine" in docs/settings.md.',
  },
  login: {
    fallback: '',
    help: 'A login provider whose tokens (JWTs) are also accepted. See docs/how-to-login.md.',
  },
  audit: {
    fallback: '',
    help: 'Where each line of the audit is also sent: {file: PATH}, {webhook: {url: URL, secret_env: NAME}}, or both. See docs/operations.md.',
  },
  log_level: {
    variable: 'EBB_LOG_LEVEL',
    fallback: 'info',
    help: 'debug, info, warn or error.',
  },
  log_format: {
    variable: 'EBB_LOG_FORMAT',
    fallback: '',
    help: 'json or text. Without it: text on a terminal, otherwise JSON.',
  },
  per_compute_metrics: {
    fallback: 'true',
    help: 'Exports series for each compute (state, sizes, timeout).',
  },
} as const satisfies Record<SettingName, SettingDeclaration>;

/** Secret variables, which are not allowed in `ebb.yaml`. */
export const SECRET_VARIABLES = {
  EBB_API_KEY: 'The API key.',
  NEON_API_KEY: 'Used if there is no other key, and only for reading.',
  'EBB_DSN_…': 'Connection strings that connection sources name as dsn_env.',
  'EBB_PROMETHEUS_TOKEN…': 'Bearer tokens that connection sources name as token_env.',
  'EBB_NOTIFY_SECRET…': 'Secrets that sign messages to webhooks, and that notify or audit name as secret_env.',
  'EBB_NOTIFY_URL…': 'URLs that notify or audit name as url_env. The URL of a Slack webhook is a secret.',
  EBB_TOKEN:
    'Bearer token of at least 16 characters that every page except /healthz requires; commands send it with --url.',
} as const;

/** The remedy for secrets in `ebb.yaml`. */
export const MISPLACED_KEYS: ReadonlyMap<string, string> = new Map([
  ['api_key', 'a key has no place in a file that others read: set EBB_API_KEY, or api_key_file'],
  ['accounts.api_key', 'a key has no place in a file that others read: set api_key_env, or api_key_file'],
  ['token', 'a token has no place in a file that others read: set EBB_TOKEN, or token_file'],
]);

/** The JSON Schema of `ebb.yaml` with the help of each setting, generated from the schema that reads it. Draft 7, since editors support that. */
export function settingsJsonSchema(): Record<string, unknown> {
  const { properties, ...schema } = z.toJSONSchema(settingsSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
  });
  const described = Object.entries(SETTINGS).map(([name, { help }]) => [
    name,
    { description: help, ...(properties?.[name] as object) },
  ]);
  return { title: 'ebb settings', ...schema, properties: Object.fromEntries(described) };
}
