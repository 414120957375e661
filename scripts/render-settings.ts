/** docs/settings.md and ebb.example.yaml, made of the settings' own declarations. */
import { SECRET_VARIABLES, SETTINGS, type SettingDeclaration } from '../src/settings/declarations.ts';
import { GENERATED, table, wrap } from './markdown.ts';

const ENTRIES: [string, SettingDeclaration][] = Object.entries(SETTINGS);

export function renderSettingsDoc(): string {
  const rows = ENTRIES.map(([name, { variable, flag, fallback, help }]) => [
    code(name),
    code(variable),
    code(flag),
    code(fallback),
    help,
  ]);
  return `# Settings

${GENERATED}

Settings come from three places. A flag counts more than a variable, a variable more than the file.

1. \`ebb.yaml\` in the working folder, or the file that \`--config FILE\` names. [ebb.example.yaml](../ebb.example.yaml) shows every
   setting with its default. An unknown setting is an error with its place, never ignored.
2. Variables. An empty one counts as not set.
3. Flags of the command.

${table(['in ebb.yaml', 'variable', 'flag', 'default', 'meaning'], rows)}

Relative paths in \`ebb.yaml\` are relative to that file; in variables and flags, to the working folder. \`EBB_POLICIES\` and
\`--policies\` take several paths with commas, or with the system's path separator, between them.

## Secrets

${table(
  ['variable', 'meaning'],
  Object.entries(SECRET_VARIABLES).map(([name, help]) => [code(name), help]),
)}

- No flag takes a key, a token or a URL with a password: other users of the machine see the arguments of every process. Such a flag
  is refused.
- \`ebb.yaml\` takes no secrets either, so that it can be reviewed and committed: a key or token in it is refused, and so is a queue
  URL with a password. \`api_key_file\` names a file instead, which holds the key and nothing else, and \`token_file\` one of tokens.
- \`NEON_API_KEY\` serves reading only: a key that lies around for other tools never changes a compute. \`ebb run --mode enforce\` with
  nothing but this key ends with an error.
- Logs, errors, metrics, queue and store never show a secret. Log lines are searched for the known values (of four characters and
  more) on their way out, whatever field they are in.
- \`api_url\` must be https, unless it points to this machine or \`allow_plain_http\` is set.

## Several accounts

Without \`accounts\` there is one account, \`default\`, whose key is in \`EBB_API_KEY\` or in the file that \`EBB_API_KEY_FILE\` names. With it,
each account has its own key, and a policy can select by account (\`select: { accounts: ["retail"] }\`):

\`\`\`yaml
accounts:
  - name: retail
    api_key_env: EBB_API_KEY_RETAIL         # a variable: EBB_API_KEY, or EBB_API_KEY_ and more capitals
    organization: org-blue-sky-1            # optional, like the next two
    plan: scale                             # free, launch or scale
    profile: current                        # see "Plans, prices, connections"
  - name: games
    api_key_file: /run/secrets/games-key    # a file that holds the key and nothing else
  - name: partners
    api_keys_folder: /run/secrets/partners  # project-scoped keys: each file named after its project
\`\`\`

- \`name\` is the \`account\` of metrics and log lines. 1 to 40 letters, digits, \`-\`, \`_\`, \`.\`.
- With an \`organization\`, only its projects are listed. A project of another one that the key shows all the same is left alone, and
  that is told: somebody put the wrong key there.
- A key file is read again when it changes and after a 401, so a key is rotated without a restart: write the new one over it, or
  move another file into its place. A file that appears in a folder of keys adds its project; one that goes takes it away. What came from a
  variable stays until a restart.
- A refused key stops the calls of its account and no other's: \`/readyz\` says which, \`ebb_api_key_valid\` is 0, and it is tried again
  after 5 s, then ever more rarely, to 5 min. Its computes stay as they are. \`ebb run\` starts as long as one account answers.
- A project that two accounts can see belongs to the first of them.
- \`EBB_API_KEY\`, \`EBB_API_KEY_FILE\` or \`api_key_file\` beside \`accounts\` is an error, unless an account names that variable. \`NEON_API_KEY\` is not
  looked at.
- The default of \`group\` depends on the names of the accounts: adding one makes a new group. Set \`group\` first if it shall keep what is stored.

## Plans, prices, connections

\`plan\` and \`prices\` turn the CU-hours of \`ebb forecast\` and \`ebb diff\` into US dollars; without a plan there is no price.

\`profile\` says how many connections Postgres accepts at a size, which connection headroom needs:

- \`seed\`: the specification's table, by the maximum of the range: 112 at 0.25 CU, 450 at 1, 4000 from 9 CU on.
- \`current\`: what the vendor documents as of 2026-11: 419.66 for each CU of min(maximum, 8 × minimum), from 100 to 4000, of which 7 are reserved.
- A table of your own, by the maximum; between two sizes that of the smaller one holds:

\`\`\`yaml
profile:
  max_connections: { 0.25: 100, 1: 400, 4: 1600 }
  reserved: 10
\`\`\`

## Disturbing

\`disruption\` and \`manual_changes\` are those of [the policy language](policies.md). A policy that says otherwise wins, key by key.

## Proxies

The control API is reached through the proxy of \`HTTPS_PROXY\` (of \`HTTP_PROXY\` if \`api_url\` is http), unless \`NO_PROXY\` names its host: names with
commas between them, each for its subdomains too, \`*\` for all. In small letters they count more. Without a scheme, http is meant. An API
on this machine is never reached through a proxy; Redis and Postgres never are. A password in the URL is treated like any other secret.

## Redis

| form of \`EBB_QUEUE_URL\` | |
|---|---|
| \`redis://USER:PASSWORD@HOST:6379/0\` | one Redis (or Valkey), or whatever a hosting service puts before several |
| \`redis+sentinel://USER:PASSWORD@HOST:26379,HOST/NAME/0?sentinel_username=…&sentinel_password=…\` | the primary that these Sentinels watch under this name; user and password are those of Redis |
| \`redis+cluster://USER:PASSWORD@HOST:6379,HOST\` | a Cluster, from some of its nodes; all keys of a group are on one of them |

- With \`rediss\` in place of \`redis\` everything goes through TLS, to Sentinels too. A certificate of your own authority needs
  \`NODE_EXTRA_CA_CERTS=FILE\`. Characters that mean something in a URL are written as %XX.
- Redis 6.2 or newer. Its \`maxmemory-policy\` must be \`noeviction\`: with another one it may throw away what ebb keeps, which is told at the start.
- While Redis is away, full, read-only or incomplete, nothing is written to any compute. That is told once, and once when it is over;
  nothing needs a restart. What was queued for that time is caught up. An emptied Redis is noticed and filled anew.
- Replication of Redis lags: after a failover the newest records may be missing. Each compute is read again before it is written to.

## Listening beyond this machine

\`/metrics\` and the other pages are served on 127.0.0.1. Another address needs tokens, or the flag \`--insecure\` where the network
is trusted. Where there are tokens, every page but \`/healthz\` asks for one: \`Authorization: Bearer TOKEN\`; a browser asks for a name, which
may be any, and a password, which is the token.

\`EBB_TOKEN\` is shared by whoever has it. With \`token_file\` each person can have their own, and what they hold, freeze, release or
approve is theirs by name, whatever name the request gives. Both may be set; either counts.

\`\`\`
# NAME: TOKEN, or a TOKEN alone for one that is shared; openssl rand -hex 32 makes one
ann: 6f1c…
bob: 09ab…
prometheus: 77de…
\`\`\`

The file is read anew when it changes: a line that is gone counts no more with the next request. While the file can't be read or a line is
wrong, none of its tokens counts, and the log says why. At the start that is an error.
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
  api_key_file: '/run/secrets/ebb-api-key',
  group: 'production',
  plan: 'launch',
  sources: '{counts: {from: prometheus, url: "http://prometheus:9090", query: up}}',
  manual_changes: 'respect',
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
    profile: current
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

function code(text: string | undefined): string {
  return text === undefined || text === '' ? '' : `\`${text}\``;
}
