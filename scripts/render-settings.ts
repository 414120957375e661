/** docs/settings.md and ebb.example.yaml, made of the settings' own declarations. */
import { SECRET_VARIABLES, SETTINGS, type SettingDeclaration } from '../src/settings/declarations.ts';
import { GENERATED, table, wrap } from './markdown.ts';

const ENTRIES: [string, SettingDeclaration][] = Object.entries(SETTINGS);

export function renderSettingsDoc(): string {
  const rows = ENTRIES.map(([name, { variable, flag, fallback, help }]) => [
    code(name),
    [code(variable), code(flag)].filter((text) => text !== '').join(', '),
    code(fallback),
    withLinks(help),
  ]);
  return `# Settings

${GENERATED}

Flags override environment variables, and variables override \`ebb.yaml\` in the working directory, or the file of \`--config FILE\`. Unknown settings are errors;
an empty variable counts as not set. [ebb.example.yaml](../ebb.example.yaml) has every setting.

${table(['in ebb.yaml', 'variable, flag', 'default', 'meaning'], rows)}

Relative paths in \`ebb.yaml\` are relative to that file; in variables and flags, to the working directory. \`EBB_POLICIES\` and
\`--policies\` take several paths, separated by commas or by the system's path separator.

## Secrets

${table(
  ['variable', 'meaning'],
  Object.entries(SECRET_VARIABLES).map(([name, help]) => [code(name), help]),
)}

- Flags and an \`ebb.yaml\` with a key, a token or a URL with a password are refused.
- \`ebb run --mode enforce\` with only \`NEON_API_KEY\` is an error.
- Logs, errors, metrics, queue and store never contain a secret.
- \`ebb.yaml\` can't decide where secrets are sent. With a key set, an \`api_url\` other than the vendor's or this machine must come from \`EBB_API_URL\` or
  \`--api-url\`. \`NEON_API_KEY\` is only sent to the vendor or this machine, bearer tokens of sources
  [only where a variable allows it](connections.md#prometheus).

## Several accounts

Without \`accounts\` there is one account, \`default\`. With them each has its own key, and a policy can select by account
(\`select: { accounts: ["retail"] }\`):

\`\`\`yaml
accounts:
  - name: retail
    api_key_env: EBB_API_KEY_RETAIL         # a variable: EBB_API_KEY, or EBB_API_KEY_ and more capitals
    organization: org-blue-sky-1            # optional, like the next three
    plan: scale                             # free, launch or scale
    profile: vendor-2026                    # see "Plans, prices, connections"
    verified: { idle_resize: stays }        # see docs/verify.md
  - name: games
    api_key_file: /run/secrets/games-key    # a file that holds the key and nothing else
  - name: partners
    api_keys_folder: /run/secrets/partners  # project-scoped keys: each file named after its project
\`\`\`

- \`name\` is the label \`account\` of metrics and log lines: 1 to 40 letters, digits, \`-\`, \`_\`, \`.\`.
- With an \`organization\`, only its projects are managed. Others are ignored with a warning.
- A new file in a folder of keys adds its project; a deleted one removes it. [Changed ones are read again](day-2.md#rotate-a-key).
- A [refused key](errors.md) stops only its own account. \`ebb run\` starts if one account answers.
- A project that two accounts can see belongs to the first of them.
- A key outside of \`accounts\` is an error, unless an account names its variable. \`NEON_API_KEY\` is ignored.
- The default of \`group\` depends on the names of the accounts: set it before you add one, to keep the stored data.

## Plans, prices, connections

Without a \`plan\` no price is shown. \`profile\` is how many connections Postgres accepts at a size, for headroom policies:

- \`specification\`: the table of the API's specification, by the maximum of the range: 112 at 0.25 CU, 450 at 1, 4000 from 9 CU on.
- \`vendor-2026\`: what the vendor documents as of 2026-11: 419.66 for each CU of min(maximum, 8 × minimum), from 100 to 4000, of which 7 are reserved.
- Your own table, by the maximum. Between two sizes that of the smaller counts:

\`\`\`yaml
profile:
  max_connections: { 0.25: 100, 1: 400, 4: 1600 }
  reserved: 10
\`\`\`

## Disruption

\`disruption\` and \`manual_changes\` have the keys of [the policy language](policies.md#when-a-change-may-be-made), where a policy overrides them.

## Proxies

The control API is reached through the proxy of \`HTTPS_PROXY\` (of \`HTTP_PROXY\` if \`api_url\` is http), unless \`NO_PROXY\` contains its host: names with
their subdomains, separated by commas, or \`*\`. Lower-case variables take precedence. An API on this machine is reached directly, as is everything else.

## Redis

| form of \`EBB_QUEUE_URL\` | |
|---|---|
| \`redis://USER:PASSWORD@HOST:6379/0\` | one Redis (or Valkey), or the endpoint of a hosted one |
| \`redis+sentinel://USER:PASSWORD@HOST:26379,HOST/NAME/0?sentinel_username=…&sentinel_password=…\` | the primary that these Sentinels watch under this name; user and password are for Redis |
| \`redis+cluster://USER:PASSWORD@HOST:6379,HOST\` | a Cluster, found through these nodes; all keys of a group are in one slot |

- With \`rediss\` instead of \`redis\` all connections use TLS, including those to Sentinels. For your own certificate authority set
  \`NODE_EXTRA_CA_CERTS=FILE\`. Characters with a meaning in a URL are written as %XX.
- [Deploy](deploy.md#redis-or-valkey) says how to configure Redis, [reliability](reliability.md#the-store) what happens while it is unavailable.

## Listening beyond this machine

The pages are served on 127.0.0.1. Any other address needs tokens, or the flag \`--insecure\` if the network is trusted: then the pages answer
only to IP addresses and known host names (\`http_hosts\`). With tokens, every page except \`/healthz\` requires one:
\`Authorization: Bearer TOKEN\`; in a browser, any name, and the token as the password.

\`EBB_TOKEN\` is one shared token. With \`token_file\` each person can have their own, whose name is recorded with what they do.

\`\`\`
# NAME: TOKEN, or a TOKEN alone for one that is shared; openssl rand -hex 32 makes one
ann: 6f1c…
bob: 09ab…
prometheus [read]: 77de…
carl [operate team-web, approve team-web]: 51f0…
\`\`\`

Without roles a token may do everything. With them it may read, and:

| role | what it allows |
|---|---|
| \`read\` | nothing more |
| \`operate\`, \`operate TEAM\` | hold, release and restore computes; of a [team](how-to-teams.md), those of projects in its scope |
| \`freeze\`, \`freeze TEAM\` | freeze and unfreeze; of a team, what is in its scope |
| \`approve\`, \`approve TEAM\` | approve staged policy sets; of a team, those of its files |

Anything else is refused with 403, and logged (\`ebb.request_forbidden\`). The file is read again when it changes. If it can't be read or a line is invalid, none
of its tokens is accepted; at the start that is an error.
`;
}

/** A file that says what is so anyway: every setting with its default, or commented out where there is none. */
export function renderExampleYaml(): string {
  const head = `# Settings of ebb. Copy this file to ebb.yaml; every line shows the default, so keep only what you change.
# Variables (EBB_...) override it, flags override both. Secrets have no place here: see docs/settings.md.
`;
  return `${head}\n${ENTRIES.map(exampleOf).join('\n')}`;
}

const EXAMPLES: Readonly<Record<string, string>> = {
  token_file: '/run/secrets/ebb-tokens',
  audit: '{ file: log/audit.jsonl }',
  login: `
  issuer: https://login.example.com
  audience: ebb
  jwks_url: https://login.example.com/jwks
  groups: { platform: [operate, freeze, approve] }`,
  api_key_file: '/run/secrets/ebb-api-key',
  group: 'production',
  plan: 'launch',
  log_format: 'json',
  sources: '{counts: {from: prometheus, url: "http://prometheus:9090", query: up}}',
  manual_changes: 'respect',
  notify_before: '15m',
  status_url: 'https://ebb.example',
  disruption: `
  raise: { when: any }
  lower: { when: idle, deadline: 2h, then: apply }
  quiet_below: 3
  cooldown: 10m
  at_once: 10%`,
  accounts: `
  - name: retail
    api_key_env: EBB_API_KEY_RETAIL
    organization: org-blue-sky-1
    plan: scale
    profile: vendor-2026
  - name: games
    api_key_file: /run/secrets/ebb-games-key`,
};

function exampleOf([name, { variable, flag, fallback, help }]: [string, SettingDeclaration]): string {
  const overriddenBy = [variable, flag].filter((one) => one !== undefined).join(', ');
  const comment = wrap(overriddenBy === '' ? help : `${help} (${overriddenBy})`, 110).map((line) => `# ${line}\n`);
  const example = `${name}: ${EXAMPLES[name]}`.replace(': \n', ':\n').replace(/^/gm, '# ');
  const setting = fallback === '' ? example : `${name}: ${fallback}`;
  return `${comment.join('')}${setting}\n`;
}

/** A help text names pages of docs/ by their paths; the page itself links to them. */
function withLinks(help: string): string {
  return help
    .replace(/See "([^"]+)" in docs\/settings\.md\./g, (_, heading) => `[More](#${anchorOf(heading)}).`)
    .replace(/See docs\/([\w-]+)\.md\./g, '[More]($1.md).');
}

function anchorOf(heading: string): string {
  return heading.toLowerCase().replaceAll(',', '').replaceAll(' ', '-');
}

function code(text: string | undefined): string {
  return text === undefined || text === '' ? '' : `\`${text}\``;
}
