/**
 * Who may import whom in `src/`, type imports included: docs/architecture.md says why. `npm run lint` runs it, and
 * test/architecture/layers.test.ts shows that each arrow that is not in the table fails.
 */

/** Layers by the folders (or files) that each may import, besides itself. */
export const LAYERS = {
  common: [],
  domain: [],
  policy: ['common', 'domain'],
  ports: ['domain'],
  settings: ['common', 'domain', 'policy', 'ports'],
  app: ['common', 'domain', 'ports'],
  adapters: ['common', 'domain', 'ports'],
  compose: ['common', 'domain', 'policy', 'ports', 'settings', 'app', 'adapters'],
  emulator: [],
  cli: ['common', 'domain', 'policy', 'settings', 'app', 'compose'],
};

/** Folders of `src/domain` from the bottom up: each may import those before it. */
export const DOMAIN_FOLDERS = [
  ...[
    'compute',
    'time',
    'rate-budget',
    'usage',
    'trial',
    'spend',
    'guards',
    'records',
    'policy',
    'connections',
    'overrides',
  ],
  ...['decide', 'plan', 'evaluate', 'notifications', 'forecast', 'backtest', 'awake', 'recommend'],
];

/** Folders of `src/app` from the bottom up: each may import those before it. */
export const APP_FOLDERS = [
  ...[
    'telemetry',
    'notifications',
    'leases',
    'readings',
    'fleet',
    'guards',
    'usage',
    'recommend',
    'evaluate-project',
    'group',
    'connections',
  ],
  ...['operations', 'apply', 'rollout', 'reconcile', 'boundaries', 'announcements', 'operator', 'situation', 'verify'],
];

/** Single arrows that the table does not have. */
const EXCEPT = {
  // The emulator has wire types of its own, so that client and server can't share a mistake; sizes are the vendor's.
  emulator: ['src/domain/compute/compute-units.ts'],
};

/** Only these commands start an emulator. */
const WITH_EMULATOR = '^src/cli/(emulator|demo)(/|\\.ts$)';

/** Libraries of layers that may not take any. */
const PURE_LIBRARIES = '(^|/)node_modules/(luxon|@types/luxon|cron-parser)/';
/** A hash is as pure as a sum; all else of node:crypto is not. */
const WITH_SHA_256 = '^src/domain/(trial/assignment|policy/policy-set)\\.ts$';
const APP_LIBRARIES = ['bullmq', 'ioredis', 'undici', 'pino', 'prom-client', 'pg', 'hono'];

const of = (layer) => `^src/${layer}(/|\\.ts$)`;
const anyOf = (layers) => layers.map(of);

const layerRules = Object.entries(LAYERS).map(([layer, allowed]) => ({
  name: `layer-${layer}`,
  comment: `src/${layer} may import ${allowed.join(', ') || 'no other layer'}`,
  severity: 'error',
  from: { path: of(layer), ...(layer === 'cli' && { pathNot: WITH_EMULATOR }) },
  to: { path: '^src/', pathNot: [...anyOf([layer, ...allowed]), ...(EXCEPT[layer] ?? [])] },
}));

/** A folder of a layer imports no folder that stands after it. */
const folderRules = (layer, folders) =>
  folders.slice(0, -1).map((folder, index) => ({
    name: `folder-${layer}-${folder}`,
    comment: `src/${layer}/${folder} may import ${folders.slice(0, index).join(', ') || 'no other folder'}`,
    severity: 'error',
    from: { path: `^src/${layer}/${folder}/` },
    to: { path: folders.slice(index + 1).map((later) => `^src/${layer}/${later}/`) },
  }));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...layerRules,
    ...folderRules('domain', DOMAIN_FOLDERS),
    ...folderRules('app', APP_FOLDERS),
    {
      name: 'layer-cli-with-emulator',
      comment: 'the commands that start an emulator may import it, and otherwise what cli may',
      severity: 'error',
      from: { path: WITH_EMULATOR },
      to: { path: '^src/', pathNot: anyOf(['cli', 'emulator', ...LAYERS.cli]) },
    },
    {
      name: 'known-layer',
      comment: 'every file of src/ belongs to a layer',
      severity: 'error',
      from: { path: '^src/', pathNot: anyOf(Object.keys(LAYERS)) },
      to: {},
    },
    {
      name: 'adapters-apart',
      comment: 'an adapter meets another only in compose',
      severity: 'error',
      from: { path: '^src/adapters/([^/]+)/' },
      to: { path: '^src/adapters/', pathNot: '^src/adapters/$1/' },
    },
    {
      name: 'domain-libraries',
      comment: 'the domain is pure: of libraries it takes luxon and cron-parser, and SHA-256 where trials draw',
      severity: 'error',
      from: { path: of('domain'), pathNot: WITH_SHA_256 },
      to: { pathNot: ['^src/', PURE_LIBRARIES] },
    },
    {
      name: 'app-libraries',
      comment: 'files, sockets and engines are the matter of adapters',
      severity: 'error',
      from: { path: of('app') },
      to: { path: ['^(node:)?(fs|http|net)(/|$)', `(^|/)node_modules/(${APP_LIBRARIES.join('|')})/`] },
    },
    {
      name: 'no-circles',
      comment: 'modules that import each other, types included, can only be read together',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: ['.ts', '.tsx', '.js', '.json'] },
  },
};
