/**
 * Runs the simulation: `npm run simulate -- --seeds 2000 [--from 1]` runs many seeds in parallel, `--seed 7` prints one trace, and a seed that
 * breaks a rule is printed with its shortest list of actions. `--faults` puts faults back, one at a time, that ebb once had, and shows which
 * seed finds them. `--mutants 60 [--draw 1]` changes the source in so many places, one at a time, and shows which a seed notices. See
 * test/simulation.md.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { KNOWN_FAULTS, type KnownFault } from '../test/simulation/faults.ts';
import type { Mutant } from '../test/simulation/mutants.ts';
import type { Done } from '../test/simulation/one-seed.ts';
import { planOf } from '../test/simulation/plan.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const WORKER = join(ROOT, 'scripts/simulate-worker.mjs');

/** Most of what a seed makes is garbage at once, and much of its code runs a few times only: then an interpreter is slow. */
const WORKER_FLAGS = ['--max-semi-space-size=64', '--always-sparkplug'] as const;

/** Files that are a part of the bundle. */
const OWN_SOURCE = /\/(src|test|scripts)\/.*\.tsx?$/;

/** Seeds that a worker runs before it says so. */
const AT_A_TIME = 5;

/** A seed takes about a second, on a machine that is very busy a minute; one that takes so long never ends. Many mutants never end. Milliseconds. */
const [LONGEST_SEED_MS, LONGEST_MUTANT_SEED_MS] = [600_000, 90_000];

/** A mutant is tried by so many of the seeds that reach it. */
const TRIES = 30;

/** What is changed by mutants. */
const MUTATED = ['src/app/reconcile', 'src/app/apply', 'src/app/rollout'];

/** Decides only what messages say of a restart: notifications are not simulated. */
const NOT_MUTATED = new Set(['src/app/apply/told-before.ts']);

let pool = createPool(0, LONGEST_SEED_MS);
await main().finally(() => pool.close());

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '200' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      reached: { type: 'boolean', default: false },
      faults: { type: 'boolean', default: false },
      fault: { type: 'string', default: '' },
      first: { type: 'boolean', default: false },
      'not-shortest': { type: 'boolean', default: false },
      mutants: { type: 'string' },
      draw: { type: 'string', default: '1' },
      skip: { type: 'string', default: '0' },
      workers: { type: 'string', default: String(Math.max(2, availableParallelism())) },
    },
  });
  pool = createPool(Number(values.workers), values.mutants === undefined ? LONGEST_SEED_MS : LONGEST_MUTANT_SEED_MS);
  if (values.seed !== undefined) return showOne(Number(values.seed));
  const from = Number(values.from);
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => from + index);
  if (values.mutants !== undefined) {
    const sample = {
      count: Number(values.mutants),
      draw: Number(values.draw),
      skip: Number(values.skip),
      isTried: !values.reached,
    };
    return tryMutants(seeds, sample);
  }
  if (values.faults) return findFaults(seeds, values.fault);
  const reached = new Map<string, number>();
  const broken: Done[] = [];
  let done = 0;
  const usedMs = await runSeeds(seeds, {
    isFirstOnly: values.first,
    onDone(one) {
      done += 1;
      for (const [what, times] of one.reached) reached.set(what, (reached.get(what) ?? 0) + times);
      if (one.broken) broken.push(one);
      if (one.broken) process.stdout.write(`seed ${one.seed}: ${one.broken.rule}: ${one.broken.what}\n`);
      if (done % 100 === 0) process.stdout.write(`${done} of ${seeds.length} seeds, ${broken.length} broke a rule\n`);
    },
  });
  report(done, reached, values.reached);
  process.stdout.write(`${Math.round(usedMs / done)} ms of processor time a seed\n`);
  const [first] = broken.toSorted((a, b) => a.seed - b.seed);
  if (!first?.broken) return;
  process.exitCode = 1;
  if (values.first || values['not-shortest']) return;
  await explain(first.seed, first.broken.rule);
}

/** Changes a source file on its way into the bundle. */
type Change = (file: string, text: string) => string;

interface Running {
  change?: Change;
  /** Stops at the first seed that breaks a rule. */
  isFirstOnly: boolean;
  onDone(one: Done): void;
}

/** Runs seeds in parallel, by a bundle: it starts in a tenth of the time, and faults are put back on its way. Returns the processor time. */
async function runSeeds(seeds: readonly number[], { change, isFirstOnly, onDone }: Running): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-simulate-'));
  const waiting = [...seeds];
  let usedMs = 0;
  const note = (one: Done) => {
    usedMs += one.usedMs;
    onDone(one);
    if (isFirstOnly && one.broken) stop();
  };
  const stop = () => {
    waiting.length = 0;
  };
  try {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const module = join(folder, 'simulate.mjs');
    await bundle(module, change);
    await pool.run({ module, take: () => waiting.splice(0, isFirstOnly ? 1 : AT_A_TIME), note, stop });
    return usedMs;
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function bundle(outfile: string, change: Change = (_file, text) => text): Promise<void> {
  await build({
    ...{ entryPoints: [join(ROOT, 'test/simulation/one-seed.ts')], outfile, bundle: true, packages: 'external' },
    ...{ platform: 'node', format: 'esm', target: 'node20', logLevel: 'silent' },
    plugins: [{ name: 'faults', setup: ({ onLoad }) => onLoad({ filter: OWN_SOURCE }, load) }],
  });
  async function load({ path }: { path: string }) {
    const changed = change(relative(ROOT, path), await readFile(path, 'utf8'));
    // Files beside a module are found as before.
    const contents = changed.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
    return { contents, loader: path.endsWith('x') ? ('tsx' as const) : ('ts' as const) };
  }
}

/** The change that puts a fault back. */
function putBack(edits: KnownFault['edits']): Change {
  return (ofFile, text) =>
    edits.reduce((after, { file, from, to }) => {
      if (file !== ofFile) return after;
      if (!after.includes(from)) throw new Error(`${file} has changed: it has no "${from}"`);
      return after.replace(from, () => to);
    }, text);
}

interface Work {
  module: string;
  /** The next seeds; none: there are no more. */
  take(): number[];
  note(one: Done): void;
  /** Called when a process has ended: there is nothing more to take. */
  stop(): void;
}

/** Processes that run seeds, and that are kept: each takes a second to load what bundles share. */
function createPool(size: number, longestSeedMs: number) {
  const workers: (ChildProcess | undefined)[] = Array.from({ length: size }, () => undefined);

  function workerOf(index: number): ChildProcess {
    const worker = workers[index] ?? fork(WORKER, { execArgv: [...WORKER_FLAGS] });
    workers[index] = worker;
    return worker;
  }

  function work(index: number, { module, take, note, stop }: Work): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = workerOf(index);
      let late: NodeJS.Timeout | undefined;
      const done = () => {
        clearTimeout(late);
        worker.off('exit', lost).off('message', hear);
        resolve();
      };
      const lost = (code: number | null) => {
        clearTimeout(late);
        workers[index] = undefined;
        stop();
        reject(new Error(code === null ? 'a seed never ends' : `a worker ended with ${code}`));
      };
      const send = () => {
        const seeds = take();
        if (seeds.length > 0) worker.send({ module, seeds });
        else done();
      };
      const hear = (message: Done | 'ready') => {
        clearTimeout(late);
        late = setTimeout(() => worker.kill('SIGKILL'), longestSeedMs);
        if (message === 'ready') send();
        else note(message);
      };
      worker.on('exit', lost).on('message', hear);
      late = setTimeout(() => worker.kill('SIGKILL'), longestSeedMs);
      send();
    });
  }

  return {
    /** Rejects once one of them has ended, after the others have done what they had begun. */
    async run(task: Work): Promise<void> {
      const results = await Promise.allSettled(workers.map((_, index) => work(index, task)));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    },
    close() {
      for (const worker of workers) worker?.disconnect();
    },
  };
}

/** Each fault, until a seed breaks a rule; or only those whose name contains a text. */
async function findFaults(seeds: readonly number[], part: string): Promise<void> {
  const faults = KNOWN_FAULTS.filter(({ name }) => name.includes(part));
  let found = 0;
  for (const { name, edits } of faults) {
    const by = await findFault(seeds, putBack(edits));
    if (by) found += 1;
    process.stdout.write(`${by ? `found by seed ${by.seed}: ${by.broken?.rule}` : 'not found'}: ${name}\n`);
  }
  process.stdout.write(`${found} of ${faults.length} found\n`);
}

/** The first seed that breaks a rule with this change, and breaks none without it. */
async function findFault(seeds: readonly number[], change: Change): Promise<Done | undefined> {
  const tried = new Set<number>();
  for (;;) {
    const broken = await brokenBy(
      seeds.filter((seed) => !tried.has(seed)),
      { change, isFirstOnly: true },
      ({ seed }) => tried.add(seed),
    );
    if (broken.length === 0) return undefined;
    const own = await brokenBy(
      broken.map(({ seed }) => seed),
      { isFirstOnly: false },
    );
    const by = broken.find(({ seed }) => own.every((one) => one.seed !== seed));
    if (by) return by;
  }
}

async function brokenBy(
  seeds: readonly number[],
  options: Omit<Running, 'onDone'>,
  onDone: Running['onDone'] = () => {},
): Promise<Done[]> {
  const broken: Done[] = [];
  const note = (one: Done) => {
    onDone(one);
    if (one.broken) broken.push(one);
  };
  await runSeeds(seeds, { ...options, onDone: note });
  return broken;
}

/**
 * Mutants of the app, until a seed breaks a rule or its worker ends. Each is tried by the seeds that reach its place, those first that reach
 * it most often. Where none does, it is not tried.
 */
async function tryMutants(
  seeds: readonly number[],
  { count, draw, skip, isTried }: { count: number; draw: number; skip: number; isTried: boolean },
): Promise<void> {
  const { sampleOf } = await import('../test/simulation/mutants.ts');
  const all = await allMutants();
  const sample = sampleOf(all, skip + count, draw).slice(skip);
  const reaching = await seedsThatReach(sample, seeds);
  const counts = { killed: 0, survived: 0, 'not reached': 0 };
  for (const mutant of sample) {
    const own = reaching.get(mutant.index) ?? [];
    const by = own.length > 0 && isTried ? await killerOf(mutant, own.slice(0, TRIES)) : undefined;
    const tried = by === undefined ? 'survived' : 'killed';
    const outcome = own.length === 0 ? 'not reached' : tried;
    counts[outcome] += 1;
    const { file, line, before, after } = mutant;
    const what = `${file}:${line}: ${before.replaceAll(/\s+/g, ' ').slice(0, 100)} → ${after.replaceAll(/\s+/g, ' ').slice(0, 100)}`;
    process.stdout.write(`${outcome}${by === undefined ? '' : ` by ${by}`}: ${what} (reached by ${own.length})\n`);
  }
  process.stdout.write(
    `${counts.killed} of ${sample.length} mutants killed, ${counts['not reached']} not reached, of ${all.length} that there are\n`,
  );
}

type IndexedMutant = Mutant & { index: number };

async function allMutants(): Promise<IndexedMutant[]> {
  const { mutantsOf } = await import('../test/simulation/mutants.ts');
  const all: Mutant[] = [];
  for (const folder of MUTATED) {
    for (const name of (await readdir(join(ROOT, folder))).toSorted()) {
      const file = `${folder}/${name}`;
      if (!NOT_MUTATED.has(file)) all.push(...mutantsOf(file, await readFile(join(ROOT, file), 'utf8')));
    }
  }
  return all.map((mutant, index) => ({ ...mutant, index }));
}

/** By mutant, the seeds that reach its place, those first that reach it most often. */
async function seedsThatReach(
  sample: readonly IndexedMutant[],
  seeds: readonly number[],
): Promise<Map<number, number[]>> {
  const { withHits } = await import('../test/simulation/mutants.ts');
  const hits = new Map<number, { seed: number; times: number }[]>();
  for (const { index, around } of sample) hits.set(index, around ? [] : seeds.map((seed) => ({ seed, times: 1 })));
  const ofFile = (file: string) => sample.filter((one) => one.file === file);
  await runSeeds(seeds, {
    isFirstOnly: false,
    change: (file, text) => withHits(text, ofFile(file)),
    onDone: (done) => {
      for (const [index, times] of done.hits) hits.get(index)?.push({ seed: done.seed, times });
    },
  });
  const inOrder = (found: { seed: number; times: number }[]) =>
    found.toSorted((a, b) => b.times - a.times || a.seed - b.seed).map(({ seed }) => seed);
  return new Map([...hits].map(([index, found]) => [index, inOrder(found)]));
}

async function killerOf(
  { file: mutated, from, to, after }: Mutant,
  seeds: readonly number[],
): Promise<string | undefined> {
  const change: Change = (file, text) => (file === mutated ? text.slice(0, from) + after + text.slice(to) : text);
  try {
    const by = await findFault(seeds, change);
    return by && `seed ${by.seed}: ${by.broken?.rule}`;
  } catch (error) {
    // What can't be built says nothing of the rules: the source was changed meanwhile.
    if ((error as Error).message.startsWith('Build failed')) throw error;
    return `an error: ${(error as Error).message.split('\n')[0]}`;
  }
}

function report(count: number, reached: ReadonlyMap<string, number>, isWhole: boolean): void {
  const sums = new Map<string, { kinds: number; times: number }>();
  for (const [what, times] of reached) {
    const [kind = ''] = what.split(' ');
    const sum = sums.get(kind) ?? { kinds: 0, times: 0 };
    sums.set(kind, { kinds: sum.kinds + 1, times: sum.times + times });
    if (isWhole) process.stdout.write(`${what}: ${times}\n`);
  }
  const of = (kind: string) => `${sums.get(kind)?.kinds ?? 0} (${sums.get(kind)?.times ?? 0} times)`;
  process.stdout.write(
    `${count} seeds: ${of('port')} different calls of ports, ${of('gate')} gates, ${of('event')} events, ${of('pair')} pairs of troubles\n`,
  );
}

async function explain(seed: number, rule: string): Promise<void> {
  const { shrink } = await import('../test/simulation/shrink.ts');
  const short = await shrink(planOf(seed), rule);
  process.stdout.write(`\nseed ${seed} breaks "${rule}" with these ${short.actions.length} actions:\n`);
  for (const action of short.actions) process.stdout.write(`${JSON.stringify(action)}\n`);
}

async function showOne(seed: number): Promise<void> {
  const { simulate } = await import('../test/simulation/run.ts');
  const { trace, violations } = await simulate(planOf(seed));
  process.stdout.write(`${trace.join('\n')}\n`);
  const [broken] = violations;
  if (!broken) return;
  process.exitCode = 1;
  await explain(seed, broken.rule);
}
