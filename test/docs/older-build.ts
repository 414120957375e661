import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The version of {@link makeOlderBuild}; lower than any released one. */
const VERSION = '0.0.9';

/**
 * Copies a built command as a release with an older version and decision engine. Returns its `main.js`. The stores are those of the present
 * code: `old-stores.test.ts` opens what a real older release has stored.
 */
export async function makeOlderBuild(main: string, folder: string): Promise<string> {
  const build = dirname(dirname(main));
  const root = dirname(build);
  await mkdir(folder, { recursive: true });
  await cp(build, join(folder, 'dist'), { recursive: true });
  for (const name of ['node_modules', 'policies', 'schema']) await symlink(join(root, name), join(folder, name));
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, version: VERSION }));
  const bundle = join(folder, 'dist/cli/bundle.cjs');
  const text = await readFile(bundle, 'latin1');
  const older = text.replace(/\bDECISION_VERSION=\d+/, 'DECISION_VERSION=0');
  if (older === text) throw new Error('the bundle has no version of the decision engine');
  await writeFile(bundle, older, 'latin1');
  // V8 takes a cache of code with the same length, which is that of the newer engine.
  await rm(`${bundle}.cache`);
  return join(folder, 'dist/cli/main.js');
}
