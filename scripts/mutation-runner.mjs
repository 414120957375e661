/**
 * A test runner for Stryker that runs the tests of the domain in its own process: for each mutant a bundle of sources and
 * tests is evaluated anew, which takes milliseconds where starting vitest takes seconds. A new evaluation also empties what
 * modules remember. It knows as much of vitest as these tests use: describe, it, each, expect.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from '@vitest/expect';
import { build } from 'esbuild';
import { globSync } from 'tinyglobby';

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

/** Where the instrumented code looks for the active mutant, and leaves what it covers. */
const NAMESPACE = '__stryker__';
/** The walks minute by minute take seconds; tables of cases stand in for them. */
const ALL = 'test/domain/**/*.test.ts,!test/domain/{windows,decide}-property.test.ts';
/** Globs with commas between them: mutants of the windows make everything slow that asks them often. */
const TESTS = (process.env.EBB_MUTATION_TESTS ?? ALL).split(/,(?![^{]*})/);
/** What the first run finds, in the folder that is made for a run: a process that hangs is replaced by one that did not see it. */
const FOUND = 'mutation-dry-run.json';
/**
 * A mutant has no end that a test reaches so many times as often as the source, and once more as often as all tests together:
 * what one test has worked out is remembered for the next, so that any of them may be the one that works it out.
 */
const ENDLESS = 100;

export const strykerPlugins = [{ kind: 'TestRunner', name: 'one-process', factory: createRunner }];

function createRunner() {
  globalThis[NAMESPACE] ??= {};
  const state = globalThis[NAMESPACE];
  let evaluateUncounted;
  let mutantCoverage;
  let found;
  return {
    capabilities: () => ({ reloadEnvironment: true }),

    async init() {
      // One failing case is enough: looking for a smaller one takes seconds.
      createRequire(resolve('package.json'))('fast-check').configureGlobal({ endOnFailure: true });
      const code = await bundle();
      // Counting what is covered takes longer than the tests. It is done once, and here: the time of the dry run is what is waited for.
      if (!existsSync(FOUND)) mutantCoverage = await count(evaluator(code), state);
      evaluateUncounted = evaluator(code.replaceAll(/function stryCov_\w+\(\) {/g, '$& return;'));
    },

    async dryRun() {
      const tests = [];
      for (const test of evaluateUncounted()) tests.push(await attempt(test));
      const times = Object.fromEntries(tests.map(({ id, timeSpentMs }) => [id, timeSpentMs]));
      writeFileSync(FOUND, JSON.stringify({ times, hits: mutantCoverage.perTest }));
      return { status: 'complete', tests, mutantCoverage };
    },

    async mutantRun({ activeMutant, mutantActivation, testFilter, hitLimit }) {
      found ??= existsSync(FOUND) ? JSON.parse(readFileSync(FOUND, 'utf8')) : { times: {}, hits: {} };
      Object.assign(state, { hitCount: hitLimit === undefined ? undefined : 0, hitLimit });
      state.activeMutant = mutantActivation === 'static' ? activeMutant.id : undefined;
      try {
        const tests = collect(evaluateUncounted, testFilter, found.times);
        const limitOf = ({ id }) =>
          hitLimit && hitLimit / ENDLESS + ENDLESS * (1 + (found.hits[id]?.[activeMutant.id] ?? 0));
        return await runUntilKilled(tests, activeMutant.id, state, limitOf);
      } catch (error) {
        // Only a mutant that is active while modules are loaded can be what stops them.
        if (mutantActivation !== 'static') return { status: 'error', errorMessage: String(error) };
        return { status: 'killed', killedBy: ['import'], failureMessage: String(error), nrOfTests: 0 };
      } finally {
        state.activeMutant = undefined;
      }
    },
  };
}

/** Which mutants each test reaches, and how often. */
async function count(evaluate, state) {
  state.mutantCoverage = { static: {}, perTest: {} };
  for (const test of evaluate()) {
    state.currentTestId = test.id;
    await attempt(test);
    state.currentTestId = undefined;
  }
  return state.mutantCoverage;
}

/** The fast ones first: what they find need not be searched for. */
function collect(evaluate, testFilter, times) {
  const wanted = testFilter && new Set(testFilter);
  const tests = evaluate().filter(({ id }) => wanted?.has(id) ?? true);
  return tests.toSorted((a, b) => (times[a.id] ?? 0) - (times[b.id] ?? 0));
}

async function runUntilKilled(tests, mutantId, state, limitOf) {
  state.activeMutant = mutantId;
  let nrOfTests = 0;
  for (const test of tests) {
    nrOfTests += 1;
    Object.assign(state, { hitCount: 0, hitLimit: limitOf(test) });
    const { status, failureMessage } = await attempt(test);
    if (state.hitLimit !== undefined && state.hitCount > state.hitLimit) return { status: 'timeout' };
    if (status === 'failed') return { status: 'killed', killedBy: [test.id], failureMessage, nrOfTests };
  }
  return { status: 'survived', nrOfTests };
}

async function attempt({ id, run }) {
  const startedAtMs = performance.now();
  const result = (status) => ({ id, name: id, status, timeSpentMs: performance.now() - startedAtMs });
  try {
    await run();
    return result('success');
  } catch (error) {
    return { ...result('failed'), failureMessage: error?.message ?? String(error) };
  }
}

async function bundle() {
  const files = globSync(TESTS).toSorted();
  const { outputFiles } = await build({
    stdin: { contents: files.map((file) => `import './${file}';`).join('\n'), resolveDir: process.cwd(), loader: 'ts' },
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    plugins: [{ name: 'modules', setup: loadModules }],
  });
  return outputFiles[0].text;
}

/** Packages that are ES modules only can't be required by their default export: they come into the bundle. */
const BUNDLED = /^(p-limit|yocto-queue)$/;

function loadModules(bundler) {
  const { resolve: find } = createRequire(resolve('package.json'));
  bundler.onResolve({ filter: BUNDLED }, ({ path, resolveDir }) => ({ path: find(path, { paths: [resolveDir] }) }));
  bundler.onLoad({ filter: /\.tsx?$/ }, withOwnUrl);
}

/** In a bundle all modules would have one URL, and look for their files beside it. */
function withOwnUrl({ path }) {
  const contents = readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
  return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' };
}

/** Each call evaluates the bundle anew and gives its tests. */
function evaluator(code) {
  const requireHere = createRequire(resolve('package.json'));
  const run = new Function('require', 'module', 'exports', code);
  return () => {
    const { vitest, tests } = collector();
    run((name) => (name === 'vitest' ? vitest : requireHere(name)), { exports: {} }, {});
    return tests;
  };
}

function collector() {
  const tests = [];
  const path = [];
  const describe = (name, body) => {
    path.push(name);
    body();
    path.pop();
  };
  const it = (name, ...rest) => {
    const run = rest.find((part) => typeof part === 'function');
    tests.push({ id: `${tests.length} ${[...path, name].join(' > ')}`, run });
  };
  const argumentsOf = (row) => (Array.isArray(row) ? row : [row]);
  it.each = (table) => (name, run) => {
    for (const row of table) it(name, () => run(...argumentsOf(row)));
  };
  describe.each = (table) => (name, body) => {
    for (const row of table) describe(name, () => body(...argumentsOf(row)));
  };
  return { tests, vitest: { describe, it, test: it, expect: chai.expect } };
}
