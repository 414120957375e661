/**
 * Runs the simulation: `npm run simulate -- --seeds 2000 [--from 1]` runs many seeds in parallel, `--seed 7` prints one trace, and a seed that
 * breaks a rule is printed with its shortest list of actions. `--faults` puts faults back, one at a time, that ebb once had, and shows which
 * seed finds them. See docs/simulation.md.
 */

import { fork } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { KNOWN_FAULTS, type KnownFault } from '../test/simulation/faults.ts';
import { planOf } from '../test/simulation/plan.ts';
import { simulate } from '../test/simulation/run.ts';
import { shrink } from '../test/simulation/shrink.ts';

interface Done {
  seed: number;
  broken: { rule: string; what: string } | undefined;
  reached: [string, number][];
  /** Processor time, in milliseconds. */
  usedMs: number;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Files that are a part of the bundle. */
const OWN_SOURCE = /\/(src|test|scripts)\/.*\.tsx?$/;

/** Seeds that a worker runs before it says so. */
const AT_A_TIME = 5;

if (process.send) work();
else await main();

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
    },
  });
  if (values.seed !== undefined) return showOne(Number(values.seed));
  const from = Number(values.from);
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => from + index);
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
  if (values.first) return;
  await explain(first.seed, first.broken.rule);
}

interface Running {
  /** Faults that are put back. */
  edits?: KnownFault['edits'];
  /** Stops at the first seed that breaks a rule. */
  isFirstOnly: boolean;
  onDone(one: Done): void;
}

/** Runs seeds in parallel, by a bundle: it starts in a tenth of the time, and faults are put back on its way. Returns the processor time. */
async function runSeeds(seeds: readonly number[], { edits = [], isFirstOnly, onDone }: Running): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-simulate-'));
  const waiting = [...seeds];
  let usedMs = 0;
  const note = (one: Done) => {
    if (isFirstOnly && one.broken) waiting.length = 0;
    usedMs += one.usedMs;
    onDone(one);
  };
  try {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const module = join(folder, 'simulate.mjs');
    await bundle(module, edits);
    const take = () => waiting.splice(0, AT_A_TIME);
    await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, () => runWorker(module, take, note)));
    return usedMs;
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function bundle(outfile: string, edits: KnownFault['edits']): Promise<void> {
  await build({
    ...{ entryPoints: [fileURLToPath(import.meta.url)], outfile, bundle: true, packages: 'external' },
    ...{ platform: 'node', format: 'esm', target: 'node20', logLevel: 'warning' },
    plugins: [{ name: 'faults', setup: ({ onLoad }) => onLoad({ filter: OWN_SOURCE }, load) }],
  });
  async function load({ path }: { path: string }) {
    let contents = await readFile(path, 'utf8');
    for (const { file, from, to } of edits) {
      if (file !== relative(ROOT, path)) continue;
      if (!contents.includes(from)) throw new Error(`${file} has changed: it has no "${from}"`);
      contents = contents.replace(from, () => to);
    }
    // Files beside a module are found as before.
    contents = contents.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
    return { contents, loader: path.endsWith('x') ? ('tsx' as const) : ('ts' as const) };
  }
}

function runWorker(module: string, take: () => number[], note: (one: Done) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    // Most of what a seed makes is garbage at once.
    const worker = fork(module, { execArgv: ['--max-semi-space-size=64'] });
    worker.on('error', reject);
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
    worker.on('message', (message: Done | 'ready') => {
      if (message !== 'ready') return note(message);
      const seeds = take();
      if (seeds.length > 0) worker.send(seeds);
      else worker.disconnect();
    });
  });
}

function work(): void {
  process.on('message', async (seeds: number[]) => {
    for (const seed of seeds) {
      const before = process.cpuUsage();
      const { violations, reached } = await simulate(planOf(seed));
      const { user, system } = process.cpuUsage(before);
      const [first] = violations;
      const broken = first && { rule: first.rule, what: first.what };
      process.send?.({ seed, broken, reached: [...reached], usedMs: (user + system) / 1000 } satisfies Done);
    }
    process.send?.('ready');
  });
  process.send?.('ready');
}

/** Each fault, until a seed breaks a rule; or only those whose name contains a text. */
async function findFaults(seeds: readonly number[], part: string): Promise<void> {
  // What breaks a rule without any fault finds none.
  const own = new Set<number>();
  await runSeeds(seeds, { isFirstOnly: false, onDone: (one) => one.broken && own.add(one.seed) });
  if (own.size > 0)
    process.stdout.write(`left out, since they break a rule without any fault: ${[...own].join(', ')}\n`);
  const faults = KNOWN_FAULTS.filter(({ name }) => name.includes(part));
  let found = 0;
  for (const { name, edits } of faults) {
    let by: Done | undefined;
    const others = seeds.filter((seed) => !own.has(seed));
    const onDone = (one: Done) => {
      if (one.broken) by ??= one;
    };
    await runSeeds(others, { edits, isFirstOnly: true, onDone });
    if (by) found += 1;
    process.stdout.write(`${by ? `found by seed ${by.seed}: ${by.broken?.rule}` : 'not found'}: ${name}\n`);
  }
  process.stdout.write(`${found} of ${faults.length} found\n`);
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
  const short = await shrink(planOf(seed), rule);
  process.stdout.write(`\nseed ${seed} breaks "${rule}" with these ${short.actions.length} actions:\n`);
  for (const action of short.actions) process.stdout.write(`${JSON.stringify(action)}\n`);
}

async function showOne(seed: number): Promise<void> {
  const { trace, violations } = await simulate(planOf(seed));
  process.stdout.write(`${trace.join('\n')}\n`);
  const [broken] = violations;
  if (!broken) return;
  process.exitCode = 1;
  await explain(seed, broken.rule);
}
