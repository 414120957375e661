/**
 * Builds dist/ anew: the command and its packages in one file, since loading hundreds of small ones takes longer than most commands run, and
 * its code cache; the assets of pages; the commit, and the executable bit on the command. `--out FOLDER` builds into another folder at the
 * top of the project. With --if-possible it does nothing where the bundler is not installed (`npm ci --omit=dev`). Packages in the bundle
 * stay dependencies of ebb: audits read those, and their licences are installed with them.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

/** Not in the bundle, but found as installed: it loads files that lie beside it. */
const FOUND_AS_INSTALLED = ['@electric-sql/pglite', 'pg-native'];

/** Wraps the bundle in a function, as Node.js wraps each CommonJS file. `start-built.ts` calls it. */
const HEAD = `(function (exports, require, module, __filename, __dirname) {
const $url = require('node:url').pathToFileURL(__filename).href;`;

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { values } = parseArgs({
  options: { out: { type: 'string', default: 'dist' }, 'if-possible': { type: 'boolean' } },
});
const { out } = values;
if (values['if-possible'] && !existsSync('node_modules/esbuild')) process.exit();
const { build } = await import('esbuild');

rmSync(out, { recursive: true, force: true });
await bundleCommand();
cpSync('src/adapters/http/page/assets', `${out}/adapters/http/page/assets`, { recursive: true });
await bundleWithLicences('policy/calendars/holiday-library');
writeFileSync(`${out}/build.json`, `${JSON.stringify({ commit: commit() })}\n`);
chmodSync(`${out}/cli/main.js`, 0o755);

/** The command: what starts it, and in one file all that it needs. All files lie in a folder of `out`: see `filesBeside`. */
async function bundleCommand() {
  const options = { bundle: true, platform: 'node', target: 'node20', logLevel: 'error' };
  await build({ ...options, entryPoints: ['src/cli/start-built.ts'], outfile: `${out}/cli/main.js`, format: 'esm' });
  const bundle = `${out}/cli/bundle.cjs`;
  await build({
    ...options,
    entryPoints: ['src/cli/main.ts'],
    outfile: bundle,
    minifyWhitespace: true,
    sourcemap: true,
    sourcesContent: false,
    format: 'cjs',
    define: { 'import.meta.url': '$url' },
    // Code from a cache can't call import() in Node.js 20, so esbuild turns each import() into a require.
    supported: { 'dynamic-import': false },
    banner: { js: HEAD },
    footer: { js: '})' },
    external: FOUND_AS_INSTALLED,
    plugins: [{ name: 'files beside', setup: filesBeside }],
  });
  // esbuild leaves characters beyond ASCII in regular expressions, but the bundle is read as Latin-1.
  const text = readFileSync(bundle, 'utf8');
  writeFileSync(
    bundle,
    text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
  storeCodeCache(bundle);
}

/**
 * Stores V8's code cache of the bundle, with all functions compiled, not only those that run at the start. The flags are reset before the
 * cache is made, since V8 compares them.
 */
function storeCodeCache(bundle) {
  setFlagsFromString('--no-lazy');
  const script = new Script(readFileSync(bundle, 'latin1'), { filename: bundle });
  setFlagsFromString('--lazy');
  writeFileSync(`${bundle}.cache`, script.createCachedData());
}

/** Modules find files such as page assets relative to themselves. So in the bundle each keeps the URL that it has in src/. */
function filesBeside({ onLoad }) {
  const source = resolve('src') + sep;
  onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
    if (!path.startsWith(source)) return undefined;
    const place = relative(source, path).replaceAll(sep, '/');
    const contents = readFileSync(path, 'utf8').replaceAll(
      'import.meta.url',
      `new URL(${JSON.stringify(`../${place}`)}, $url).href`,
    );
    return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' };
  });
}

/** Of what is built: `abc1234`, by Git or, where there is none, by EBB_COMMIT; null if nobody knows. */
function commit() {
  const git = (...args) => spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim();
  // Anywhere but at the top of its checkout this folder is no part of the repository that Git finds.
  const isOwn = git('rev-parse', '--is-inside-work-tree') === 'true' && git('rev-parse', '--show-cdup') === '';
  return (isOwn ? git('rev-parse', '--short=7', 'HEAD') : process.env.EBB_COMMIT?.slice(0, 7)) || null;
}

/** Makes one file of a module and all that it needs, and puts the licences of that beside it: none of that is installed with ebb. */
async function bundleWithLicences(module) {
  const { metafile } = await build({
    entryPoints: [`src/${module}.cjs`],
    outfile: `${out}/${module}.cjs`,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20',
    legalComments: 'none',
    metafile: true,
  });
  const packages = Object.keys(metafile.inputs).flatMap(
    (input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [],
  );
  const texts = [...new Set(packages)].toSorted().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    return `${name} ${version} (${license})\n\n${file === undefined ? '' : readFileSync(join(folder, file), 'utf8')}`;
  });
  writeFileSync(`${out}/${module}.licenses.txt`, texts.join(`\n${'-'.repeat(80)}\n\n`));
}
