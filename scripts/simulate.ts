/**
 * Runs the simulation: `npm run simulate -- --seeds 2000 [--from 1]` runs many seeds in parallel, `--seed 7` prints one trace, and a seed that
 * breaks a rule is printed with its shortest list of actions. Outcomes are compared with the recorded ones; `--record` records them anew, and
 * `--seed 7 --outcome` prints one. `--faults` puts faults back, one at a time, that ebb once had, and shows which
 * seed finds them. `--mutants 60 [--draw 1]` changes the source in so many places, one at a time, and shows which a seed notices. See
 * test/simulation.md.
 */

import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { KNOWN_FAULTS, type KnownFault } from '../test/simulation/faults.ts';
import type { Mutant } from '../test/simulation/mutants.ts';
import type { Done } from '../test/simulation/one-seed.ts';
import {
  type Aspect,
  type Digests,
  differing,
  RECORDED_SEEDS,
  type Recorded,
  readRecorded,
  textOfOutcome,
  unlikeRecorded,
  writeRecorded,
} from '../test/simulation/outcome.ts';
import { planOf } from '../test/simulation/plan.ts';
import { type Change, createPool, ROOT, type Running, runSeeds } from './simulate-pool.ts';

/** A seed takes half a second, on a machine that is very busy a minute; one that takes so long never ends. Many mutants never end. Milliseconds. */
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
      record: { type: 'boolean', default: false },
      outcome: { type: 'boolean', default: false },
      mutants: { type: 'string' },
      draw: { type: 'string', default: '1' },
      skip: { type: 'string', default: '0' },
      workers: { type: 'string', default: String(Math.max(2, availableParallelism())) },
    },
  });
  pool = createPool(Number(values.workers), values.mutants === undefined ? LONGEST_SEED_MS : LONGEST_MUTANT_SEED_MS);
  if (values.seed !== undefined) return showOne(Number(values.seed), values.outcome);
  const from = Number(values.from);
  const seeds = values.record
    ? RECORDED_SEEDS
    : Array.from({ length: Number(values.seeds) }, (_, index) => from + index);
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
  const outcomes = new Map<number, Digests>();
  const usedMs = await runSeeds(pool, seeds, {
    isFirstOnly: values.first,
    onDone(one) {
      outcomes.set(one.seed, one.outcome);
      for (const [what, times] of one.reached) reached.set(what, (reached.get(what) ?? 0) + times);
      if (one.broken) broken.push(one);
      if (one.broken) process.stdout.write(`seed ${one.seed}: ${one.broken.rule}: ${one.broken.what}\n`);
      const done = outcomes.size;
      if (done % 100 === 0) process.stdout.write(`${done} of ${seeds.length} seeds, ${broken.length} broke a rule\n`);
    },
  });
  report(outcomes.size, reached, values.reached);
  process.stdout.write(`${Math.round(usedMs / outcomes.size)} ms of processor time a seed\n`);
  await (values.record ? writeRecorded(outcomes) : compareOutcomes(outcomes));
  const [first] = broken.toSorted((a, b) => a.seed - b.seed);
  if (!first?.broken) return;
  process.exitCode = 1;
  if (values.first || values['not-shortest']) return;
  await explain(first.seed, first.broken.rule);
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
async function findFault(
  seeds: readonly number[],
  change: Change,
  onDone: Running['onDone'] = () => {},
): Promise<Done | undefined> {
  const tried = new Set<number>();
  for (;;) {
    const broken = await brokenBy(
      seeds.filter((seed) => !tried.has(seed)),
      { change, isFirstOnly: true },
      (done) => {
        tried.add(done.seed);
        onDone(done);
      },
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
  await runSeeds(pool, seeds, { ...options, onDone: note });
  return broken;
}

/**
 * Mutants of the app, until a seed breaks a rule or its worker ends; where none does, if the outcome of one is another. Each is tried by the
 * seeds that reach its place, those first that reach it most often. Where none does, it is not tried.
 */
async function tryMutants(
  seeds: readonly number[],
  { count, draw, skip, isTried }: { count: number; draw: number; skip: number; isTried: boolean },
): Promise<void> {
  const { sampleOf } = await import('../test/simulation/mutants.ts');
  const all = await allMutants();
  const sample = sampleOf(all, skip + count, draw).slice(skip);
  const { reaching, outcomes } = await seedsThatReach(sample, seeds);
  const counts = { killed: 0, noticed: 0, survived: 0, 'not reached': 0 };
  for (const mutant of sample) {
    const own = reaching.get(mutant.index) ?? [];
    const tries = isTried ? own.slice(0, TRIES) : [];
    const { verdict, by = '' } =
      own.length === 0 ? { verdict: 'not reached' as const } : await tryMutant(mutant, tries, outcomes);
    counts[verdict] += 1;
    const { file, line, before, after } = mutant;
    const what = `${file}:${line}: ${before.replaceAll(/\s+/g, ' ').slice(0, 100)} → ${after.replaceAll(/\s+/g, ' ').slice(0, 100)}`;
    process.stdout.write(`${verdict}${by}: ${what} (reached by ${own.length})\n`);
  }
  process.stdout.write(
    `${counts.killed} of ${sample.length} killed by rules, ${counts.noticed} more noticed by recorded outcomes, ${counts['not reached']} not reached, of ${all.length} mutants that there are\n`,
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

/** By mutant, the seeds that reach its place, those first that reach it most often; and what comes of each seed without a mutant. */
async function seedsThatReach(
  sample: readonly IndexedMutant[],
  seeds: readonly number[],
): Promise<{ reaching: Map<number, number[]>; outcomes: Recorded }> {
  const { withHits } = await import('../test/simulation/mutants.ts');
  const hits = new Map<number, { seed: number; times: number }[]>();
  for (const { index, around } of sample) hits.set(index, around ? [] : seeds.map((seed) => ({ seed, times: 1 })));
  const outcomes = new Map<number, Digests>();
  const ofFile = (file: string) => sample.filter((one) => one.file === file);
  await runSeeds(pool, seeds, {
    isFirstOnly: false,
    change: (file, text) => withHits(text, ofFile(file)),
    onDone: (done) => {
      outcomes.set(done.seed, done.outcome);
      for (const [index, times] of done.hits) hits.get(index)?.push({ seed: done.seed, times });
    },
  });
  const inOrder = (found: { seed: number; times: number }[]) =>
    found.toSorted((a, b) => b.times - a.times || a.seed - b.seed).map(({ seed }) => seed);
  const unlike = unlikeRecorded(await readRecorded(), outcomes);
  if (unlike.length > 0) throw new Error(unlike.join('\n'));
  return { reaching: new Map([...hits].map(([index, found]) => [index, inOrder(found)])), outcomes };
}

/** A recorded outcome notices only what breaks no rule. */
async function tryMutant(
  { file: mutated, from, to, after }: Mutant,
  seeds: readonly number[],
  outcomes: Recorded,
): Promise<{ verdict: 'killed' | 'noticed' | 'survived'; by?: string }> {
  if (seeds.length === 0) return { verdict: 'survived' };
  const noticed: { seed: number; aspects: readonly Aspect[] }[] = [];
  const change: Change = (file, text) => (file === mutated ? text.slice(0, from) + after + text.slice(to) : text);
  try {
    const killer = await findFault(seeds, change, ({ seed, outcome }) => {
      const aspects = differing(outcome, outcomes.get(seed) ?? outcome);
      if (aspects.length > 0) noticed.push({ seed, aspects });
    });
    if (killer) return { verdict: 'killed', by: ` by seed ${killer.seed}: ${killer.broken?.rule}` };
  } catch (error) {
    // What can't be built says nothing of the rules: the source was changed meanwhile.
    if ((error as Error).message.startsWith('Build failed')) throw error;
    return { verdict: 'killed', by: ` by an error: ${(error as Error).message.split('\n')[0]}` };
  }
  const [first] = noticed.toSorted((a, b) => a.seed - b.seed);
  if (!first) return { verdict: 'survived' };
  const aspects = first.aspects.join(', ');
  return {
    verdict: 'noticed',
    by: ` by the outcome of seed ${first.seed} (${aspects}) and ${noticed.length - 1} more`,
  };
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

/** A recorded difference is no fault: behaviour has changed, and somebody has to look at it. */
async function compareOutcomes(outcomes: Recorded): Promise<void> {
  const unlike = unlikeRecorded(await readRecorded(), outcomes);
  if (unlike.length === 0) return;
  process.exitCode = 1;
  process.stdout.write(`${unlike.join('\n')}\n`);
}

async function showOne(seed: number, isOutcome: boolean): Promise<void> {
  const { simulate } = await import('../test/simulation/run.ts');
  const { trace, violations, outcome } = await simulate(planOf(seed));
  process.stdout.write(isOutcome ? textOfOutcome(outcome) : `${trace.join('\n')}\n`);
  const [broken] = violations;
  if (!broken) return;
  process.exitCode = 1;
  await explain(seed, broken.rule);
}
