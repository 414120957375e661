/**
 * Runs the simulation: `npm run simulate -- --seeds 2000 [--from 1]` runs many seeds in parallel, `--seed 7` prints one trace, and a seed that
 * breaks a rule is printed with its shortest list of actions. `--faults` puts faults back, one at a time, that ebb once had, and shows which
 * seed finds them. See docs/simulation.md.
 */

import { fork, spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { KNOWN_FAULTS, type KnownFault } from '../test/simulation/faults.ts';
import { planOf } from '../test/simulation/plan.ts';
import { simulate } from '../test/simulation/run.ts';
import { shrink } from '../test/simulation/shrink.ts';

interface Done {
  seed: number;
  broken: { rule: string; what: string } | undefined;
  reached: [string, number][];
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));

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
      first: { type: 'boolean', default: false },
      without: { type: 'string', default: '' },
    },
  });
  const { seed } = values;
  if (seed !== undefined) return showOne(Number(seed));
  const [from, count] = [Number(values.from), Number(values.seeds)];
  if (values.faults) return findFaults(['--seeds', values.seeds, '--from', values.from]);
  const without = new Set(values.without.split(',').map(Number));
  const reached = new Map<string, number>();
  const broken: Done[] = [];
  let done = 0;
  let next = from;
  const take = () => {
    if (values.first && broken.length > 0) return [];
    const seeds: number[] = [];
    for (; seeds.length < AT_A_TIME && next < from + count; next += 1) if (!without.has(next)) seeds.push(next);
    return seeds;
  };
  const note = (one: Done) => {
    done += 1;
    for (const [what, times] of one.reached) reached.set(what, (reached.get(what) ?? 0) + times);
    if (one.broken) broken.push(one);
    if (one.broken) process.stdout.write(`seed ${one.seed}: ${one.broken.rule}: ${one.broken.what}\n`);
    if (done % 100 === 0) process.stdout.write(`${done} of ${count} seeds, ${broken.length} broke a rule\n`);
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, () => runWorker(take, note)));
  report(count, reached, values.reached);
  const [first] = broken.toSorted((a, b) => a.seed - b.seed);
  if (!first?.broken) return;
  process.exitCode = 1;
  if (values.first) return;
  await explain(first.seed, first.broken.rule);
}

function runWorker(take: () => number[], note: (one: Done) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(import.meta.url), { execArgv: ['--import', 'tsx/esm'] });
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
      const { violations, reached } = await simulate(planOf(seed));
      const [first] = violations;
      const broken = first && { rule: first.rule, what: first.what };
      process.send?.({ seed, broken, reached: [...reached] } satisfies Done);
    }
    process.send?.('ready');
  });
  process.send?.('ready');
}

/** Each fault in a copy of the tree, until a seed breaks a rule. */
async function findFaults(options: readonly string[]): Promise<void> {
  // What breaks a rule without any fault finds none.
  const own = (await brokenIn(ROOT, options)).map((line) => /^seed (\d+)/.exec(line)?.[1] ?? '');
  if (own.length > 0) process.stdout.write(`left out, since they break a rule without any fault: ${own.join(', ')}\n`);
  const others = [...options, '--first', '--without', own.join(',')];
  let found = 0;
  for (const fault of KNOWN_FAULTS) {
    const folder = await mkdtemp(join(tmpdir(), 'ebb-fault-'));
    try {
      for (const name of ['src', 'test', 'scripts', 'docs', 'package.json', 'tsconfig.json'])
        await cp(join(ROOT, name), join(folder, name), { recursive: true });
      await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      for (const edit of fault.edits) await putBack(folder, edit);
      const [by] = await brokenIn(folder, others);
      if (by !== undefined) found += 1;
      process.stdout.write(`${by === undefined ? 'not found' : `found by ${by}`}: ${fault.name}\n`);
    } finally {
      await rm(folder, { recursive: true });
    }
  }
  process.stdout.write(`${found} of ${KNOWN_FAULTS.length} found\n`);
}

async function putBack(folder: string, { file, from, to }: KnownFault['edits'][number]): Promise<void> {
  const source = await readFile(join(folder, file), 'utf8');
  if (!source.includes(from)) throw new Error(`${file} has changed: it has no "${from}"`);
  await writeFile(join(folder, file), source.replace(from, to));
}

/** For each seed of a tree that breaks a rule, the seed and the rule. */
async function brokenIn(folder: string, options: readonly string[]): Promise<string[]> {
  const child = spawn(process.execPath, ['--import', 'tsx/esm', 'scripts/simulate.ts', ...options], {
    ...{ cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  const broken: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const [, what] = /^(seed \d+: [^:]+):/.exec(line) ?? [];
    if (what !== undefined) broken.push(what);
  }
  return broken;
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
