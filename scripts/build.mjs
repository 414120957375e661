/**
 * Builds dist/ anew: the compiler's output, what pages need besides, the commit, and the executable bit on the command. With
 * --if-possible it does nothing where the compiler is not installed (`npm ci --omit=dev`).
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const COMPILER = 'node_modules/typescript-7/bin/tsc';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
if (process.argv.includes('--if-possible') && !existsSync(COMPILER)) process.exit();
rmSync('dist', { recursive: true, force: true });
const compiled = spawnSync(process.execPath, [COMPILER, '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
if (compiled.status !== 0) process.exit(compiled.status ?? 1);
cpSync('src/adapters/http/page/assets', 'dist/adapters/http/page/assets', { recursive: true });
const { buildSync } = await import('esbuild');
bundle('policy/calendars/holiday-library');
writeFileSync('dist/build.json', `${JSON.stringify({ commit: commit() })}\n`);
chmodSync('dist/cli/main.js', 0o755);

/** Of what is built: `abc1234`, by Git or, where there is none, by EBB_COMMIT; null if nobody knows. */
function commit() {
  const git = (...args) => spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim();
  // Anywhere but at the top of its checkout this folder is no part of the repository that Git finds.
  const isOwn = git('rev-parse', '--is-inside-work-tree') === 'true' && git('rev-parse', '--show-cdup') === '';
  return (isOwn ? git('rev-parse', '--short=7', 'HEAD') : process.env.EBB_COMMIT?.slice(0, 7)) || null;
}

/** Makes one file of a module and all that it needs, and puts the licences of that beside it. */
function bundle(module) {
  const { metafile } = buildSync({
    entryPoints: [`src/${module}.cjs`],
    outfile: `dist/${module}.cjs`,
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
    return `${name} ${version} (${license})\n\n${file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8')}`;
  });
  writeFileSync(`dist/${module}.licenses.txt`, texts.join(`\n${'-'.repeat(80)}\n\n`));
}
