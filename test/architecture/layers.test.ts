import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import extractTsConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { glob } from 'tinyglobby';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import config, { APP_FOLDERS, DOMAIN_FOLDERS, LAYERS } from '../../.dependency-cruiser.mjs';

const NAMES = Object.keys(LAYERS);

/** A file that imports another for its types alone: that is an arrow too. */
interface Arrow {
  from: string;
  to: string;
  allowed: boolean;
}

const LAYER_ARROWS: Arrow[] = NAMES.flatMap((from) =>
  NAMES.filter((to) => to !== from).map((to) => ({
    ...{ from: `src/${from}/from-${to}.ts`, to: `src/${to}/target.ts` },
    allowed: LAYERS[from]?.includes(to) === true,
  })),
);

const folderArrows = (layer: string, folders: readonly string[]): Arrow[] =>
  folders.flatMap((from, place) =>
    folders
      .filter((to) => to !== from)
      .map((to) => ({
        ...{ from: `src/${layer}/${from}/from-${to}.ts`, to: `src/${layer}/${to}/target.ts` },
        allowed: folders.indexOf(to) < place,
      })),
  );

const FOLDER_ARROWS = [...folderArrows('domain', DOMAIN_FOLDERS), ...folderArrows('app', APP_FOLDERS)];

const OTHER_ARROWS: Arrow[] = [
  { from: 'src/compose/run-daemon.ts', to: 'src/emulator/target.ts', allowed: false },
  { from: 'src/settings/settings.ts', to: 'src/app/target.ts', allowed: false },
  { from: 'src/cli/demo.ts', to: 'src/emulator/target.ts', allowed: true },
  { from: 'src/cli/demo/stage.ts', to: 'src/emulator/target.ts', allowed: true },
  { from: 'src/cli/demo/act.ts', to: 'src/adapters/target.ts', allowed: false },
  { from: 'src/adapters/queue/one.ts', to: 'src/adapters/store/one.ts', allowed: false },
  { from: 'src/adapters/queue/two.ts', to: 'src/adapters/queue/one.ts', allowed: true },
  { from: 'src/emulator/sizes.ts', to: 'src/domain/compute/compute-units.ts', allowed: true },
  { from: 'src/elsewhere/file.ts', to: 'src/domain/target.ts', allowed: false },
  { from: 'src/domain/zod.ts', to: 'zod', allowed: false },
  { from: 'src/domain/files.ts', to: 'node:fs', allowed: false },
  { from: 'src/domain/random.ts', to: 'node:crypto', allowed: false },
  { from: 'src/domain/trial/assignment.ts', to: 'node:crypto', allowed: true },
  { from: 'src/domain/luxon.ts', to: 'luxon', allowed: true },
  { from: 'src/app/files.ts', to: 'node:fs/promises', allowed: false },
  { from: 'src/app/redis.ts', to: 'ioredis', allowed: false },
  { from: 'src/app/random.ts', to: 'node:crypto', allowed: true },
];

/** Two modules of each layer that import each other. */
const CIRCLES = NAMES.map((layer) => [`src/${layer}/circle-a.ts`, `src/${layer}/circle-b.ts`] as const);

const ARROWS = [...LAYER_ARROWS, ...FOLDER_ARROWS, ...OTHER_ARROWS];

describe('src/', () => {
  it('has no import that the table of layers forbids, and all of its modules are looked at', async () => {
    const { modules, summary } = await cruiseSources();
    expect(summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`)).toEqual([]);
    const files = await glob('src/**/*.{ts,tsx}');
    expect(files.length).toBeGreaterThan(300);
    const seen = new Set(modules.map(({ source }) => source));
    expect(files.filter((file) => !seen.has(file))).toEqual([]);
  });
});

describe('an import', () => {
  const here = process.cwd();
  let folder: string;
  let broken: Set<string>;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'ebb-architecture-')));
    await symlink(join(here, 'node_modules'), join(folder, 'node_modules'));
    const texts = new Map<string, string>();
    const circular = CIRCLES.flatMap(([a, b]) => [
      { from: a, to: b },
      { from: b, to: a },
    ]);
    for (const { from, to } of [...ARROWS, ...circular]) {
      const path = to.startsWith('src/') ? `${'../'.repeat(from.split('/').length - 1)}${to}` : to;
      texts.set(from, `import type * as target from '${path}';\nexport type Target = typeof target;\n`);
      if (to.startsWith('src/') && !texts.has(to)) texts.set(to, 'export const target = 1;\n');
    }
    for (const [file, text] of texts) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), text);
    }
    const { violations } = (await cruiseSources(folder)).summary;
    broken = new Set(violations.map(({ from }) => from));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(ARROWS)('from $from of $to is told right from wrong', ({ from, allowed }) => {
    expect(broken.has(from)).toBe(!allowed);
  });

  it.each(CIRCLES)('of a type that leads back to the importer is a circle: %s, %s', (...circle) => {
    // One arrow of the two is reported.
    expect(circle.filter((file) => broken.has(file))).not.toEqual([]);
  });
});

/** What lint finds in `src/` of a folder. */
async function cruiseSources(baseDir = process.cwd()): Promise<ICruiseResult> {
  const { forbidden, options } = config;
  const tsConfig = extractTsConfig('tsconfig.json');
  const { output } = await cruise(
    ['src'],
    { ...options, ruleSet: { forbidden: forbidden ?? [] }, validate: true, baseDir },
    undefined,
    { tsConfig },
  );
  if (typeof output === 'string') throw new Error(output);
  return output;
}

it.each([
  ['domain', DOMAIN_FOLDERS],
  ['app', APP_FOLDERS],
])('every folder of src/%s has its place in the order', async (layer, folders) => {
  const found = await glob(['*/'], { cwd: `src/${layer}`, onlyDirectories: true });
  expect(found.map((folder) => folder.replace(/\/$/, '')).toSorted()).toEqual([...folders].toSorted());
});
