/** Runs seeds of the simulation in processes, by a bundle of its source that may be changed on its way. */

import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import type { Done } from '../test/simulation/one-seed.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

const WORKER = join(ROOT, 'scripts/simulate-worker.mjs');

/**
 * Most of what a seed makes is garbage at once, and much of its code runs a few times only: then an interpreter is slow, and the optimising
 * compiler takes more time than it saves, unless it waits longer and inlines less. Workers take all processors, so threads for garbage save
 * nothing.
 */
const WORKER_FLAGS = [
  ...['--max-semi-space-size=64', '--single-threaded-gc', '--always-sparkplug', '--interrupt-budget=300000'],
  ...['--max-inlined-bytecode-size=200', '--max-inlined-bytecode-size-cumulative=400'],
];

/** Files that are a part of the bundle. */
const OWN_SOURCE = /\/(src|test|scripts)\/.*\.tsx?$/;

/**
 * An object literal that begins with a spread, and has more. Node.js 20 gives each object that it makes a shape of its own (Node.js 22 does
 * not), which costs a microsecond, and more wherever it is read; not so where the literal begins with nothing.
 */
const SPREAD_FIRST = /\{(\s*)\.\.\.(?!\w+\s*\})/g;

/** Seeds that a worker runs before it says so. */
const AT_A_TIME = 5;

type Pool = ReturnType<typeof createPool>;

/** Changes a source file on its way into the bundle. */
export type Change = (file: string, text: string) => string;

export interface Running {
  change?: Change;
  /** Stops at the first seed that breaks a rule. */
  isFirstOnly: boolean;
  onDone(one: Done): void;
}

/** Runs seeds in parallel, by a bundle: it starts in a tenth of the time, and faults are put back on its way. Returns the processor time. */
export async function runSeeds(
  pool: Pool,
  seeds: readonly number[],
  { change, isFirstOnly, onDone }: Running,
): Promise<number> {
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
    const placed = changed.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
    return {
      contents: placed.replaceAll(SPREAD_FIRST, '{$1...null, ...'),
      loader: path.endsWith('x') ? ('tsx' as const) : ('ts' as const),
    };
  }
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
export function createPool(size: number, longestSeedMs: number) {
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
