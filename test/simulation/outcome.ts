/**
 * What came of a simulation, as people, operators and the platform see it, not how it was found out; and what is recorded of it, to see when
 * behaviour changes. See test/simulation.md.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { canonical, digest } from '../../src/domain/policy/policy-set.ts';
import { type HistoryEntry, tookEffect } from '../../src/domain/records/history.ts';
import { bookOf, SECOND_MS } from './book.ts';
import type { World } from './world.ts';

/**
 * Writes that arrive; the history; records at the end; what the log says and how often; requests to the control API; holds, freezes,
 * approvals, the generation, and what people were told.
 */
export const ASPECTS = ['writes', 'history', 'records', 'log', 'requests', 'state'] as const;
export type Aspect = (typeof ASPECTS)[number];

/** By aspect, lines in an order that depends on nothing but them. */
export type Outcome = Readonly<Record<Aspect, readonly string[]>>;

/** What is noted while it happens. */
export type Seen = Record<'writes' | 'log' | 'requests', string[]>;

/** By aspect, the start of a hash. */
export type Digests = Readonly<Record<Aspect, string>>;

/** Fixed before anything was recorded. */
export const RECORDED_SEEDS: readonly number[] = Array.from({ length: 40 }, (_, index) => 1 + index);

const FILE = new URL('recorded.txt', import.meta.url);

/** More than a simulation has. */
const MOST_ENTRIES = 10_000;

/**
 * Notes what happens, with the second, or another step in milliseconds: boundaries are at whole seconds, and what is due then comes a few
 * milliseconds later, now in this order and now in that.
 */
export function see({ seen, time, plan }: World, aspect: keyof Seen, what: string, stepMs = SECOND_MS): void {
  const sinceMs = Math.floor((time.now() - plan.startMs) / stepMs) * stepMs;
  seen[aspect].push(`${String(sinceMs / SECOND_MS).padStart(3, '0')} ${what}`);
}

/** At the end of a simulation. */
export async function outcomeOf(world: World): Promise<Outcome> {
  const { seen, store, time, plan } = world;
  const { current } = store;
  const nowMs = time.now();
  const history = (await current.history({ limit: MOST_ENTRIES })).map(inHistory);
  const records: string[] = [];
  for (const projectId of await current.projectIds())
    for (const [computeId, record] of await current.records(projectId))
      for (const [part, value] of Object.entries(record)) records.push(`${computeId} ${part} ${canonical(value)}`);
  // What identifies a decision besides the policies, such as the settings there are, is not to be seen.
  const { decisionHash: _, ...generation } = (await current.generation()) ?? {};
  const state = [
    ...(await current.holds(nowMs)).map((hold) => `hold ${canonical(hold)}`),
    ...(await current.freezes(nowMs)).map((freeze) => `freeze ${canonical(freeze)}`),
    ...(await current.approvals()).map((approval) => `approval ${canonical(approval)}`),
    `generation ${canonical(generation)}`,
    ...[...bookOf(world).messages].map((id) => `told ${id}`),
  ];
  const lines = { ...seen, history, records, state };
  return inEachAspect((aspect) => counted(lines[aspect].map((line) => steady(line, plan.startMs))));
}

function inEachAspect<T>(made: (aspect: Aspect) => T): Record<Aspect, T> {
  return Object.fromEntries(ASPECTS.map((aspect) => [aspect, made(aspect)])) as Record<Aspect, T>;
}

/** An entry without its messages: they may be reworded. */
function inHistory(entry: HistoryEntry): string {
  const { atMs, kind, computeId, policy = '', from, to, who = '', owner = '', reasons } = entry;
  const codes = reasons.map((reason) => `${reason.code}${reason.policy ? ` of ${reason.policy}` : ''}`).join(', ');
  const outcome = tookEffect(entry) ? '' : 'without a known effect';
  return `${atMs} ${computeId} ${kind} ${policy} ${canonical({ from, to })} [${codes}] ${outcome} ${who} ${owner}`;
}

/** A line without ids, with instants as whole seconds since the start, and durations in whole seconds: a few milliseconds change nothing. */
function steady(line: string, startMs: number): string {
  return line
    .replaceAll(/\b([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[hf]-[\da-f]{10})\b/g, 'ID')
    .replaceAll(/\b1[78]\d{11}(\.\d+)?\b/g, (ms) => `${Math.floor((Number(ms) - startMs) / SECOND_MS)}s`)
    .replaceAll(/\b(\d+) ms\b/g, (_, ms) => `${Math.round(Number(ms) / SECOND_MS)} s`);
}

/** Each line once, with its count, in alphabetical order: what comes in another order within a second is the same. */
function counted(lines: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].map(([line, count]) => (count === 1 ? line : `${line} ×${count}`)).toSorted();
}

/** As text, to compare one before and after a change. */
export function textOfOutcome(outcome: Outcome): string {
  return ASPECTS.map((aspect) => [`# ${aspect}`, ...outcome[aspect], ''].join('\n')).join('\n');
}

export function digestsOf(outcome: Outcome): Digests {
  return inEachAspect((aspect) => digest(outcome[aspect].join('\n')).slice(0, 8));
}

export function differing(a: Digests, b: Digests): Aspect[] {
  return ASPECTS.filter((aspect) => a[aspect] !== b[aspect]);
}

/** By seed. */
export type Recorded = ReadonlyMap<number, Digests>;

export async function readRecorded(): Promise<Recorded> {
  const [, ...rows] = (await readFile(FILE, 'utf8')).trim().split('\n');
  const seeds = rows.map((row) => {
    const [seed, ...digests] = row.split(/ +/);
    return [Number(seed), inEachAspect((aspect) => digests[ASPECTS.indexOf(aspect)] ?? '')] as const;
  });
  return new Map(seeds);
}

export async function writeRecorded(recorded: Recorded): Promise<void> {
  const rows = RECORDED_SEEDS.map((seed) => [seed, ...ASPECTS.map((aspect) => recorded.get(seed)?.[aspect])]);
  const cells = (row: readonly unknown[]) =>
    row
      .map((cell) => String(cell).padEnd(8))
      .join(' ')
      .trimEnd();
  await writeFile(FILE, `${[['seed', ...ASPECTS], ...rows].map(cells).join('\n')}\n`);
}

/** One line for each seed whose outcome is not as it was recorded, and what to do about it. */
export function unlikeRecorded(recorded: Recorded, found: Recorded): string[] {
  const unlike = [...found]
    .toSorted(([a], [b]) => a - b)
    .flatMap(([seed, digests]) => {
      const aspects = differing(digests, recorded.get(seed) ?? digests);
      return aspects.length === 0
        ? []
        : [{ seed, what: `seed ${seed} has another outcome than recorded: ${aspects.join(', ')}` }];
    });
  const [first] = unlike;
  if (!first) return [];
  return [
    ...unlike.map(({ what }) => what),
    `npm run simulate -- --seed ${first.seed} --outcome   # shows it: compare it with that of before`,
    'npm run simulate -- --record             # if the change is meant; see test/simulation.md',
  ];
}
