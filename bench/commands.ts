/** Commands beside a daemon: how long each takes, what it asks of the control API, and what all of them, in a loop, do to a boundary. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../src/domain/time/units.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { percentile, printTable } from './figures.ts';
import { KEY, metricOf, type Stage, secondsOf, startDaemon } from './fleet-stage.ts';
import { schedule } from './limit.ts';
import { lateness, untilKnown } from './restart.ts';

const PROJECTS = 300;
const PER_MINUTE = 700;
const RUNS = 5;
/** Each figure is measured so often. */
const ROUNDS = 3;
const HISTORY_DAYS = 7;

/** By then a daemon has read usage and most of the operations. */
const SETTLED_MS = 600_000;

/** When the first boundary is, once the fleet was read, and past operations. Commands loop before and at every second one. */
const FIRST_AFTER_MS = 300_000;
const BETWEEN_MS = 90_000;

const UNKNOWN = 'nosuch';

/** With it, requests of commands are known by their answer. */
const REFUSED_KEY = 'refused';

const COMMANDS = [
  ['status'],
  ['savings'],
  ['validate', '--matches', 'policy.yaml'],
  ['explain', UNKNOWN, '--policies', 'policy.yaml'],
  ['cost'],
  ['usage', 'export', '--out', 'past'],
  ['awake'],
  ['plan', '--policies', 'policy.yaml'],
  ['forecast', '--policies', 'policy.yaml'],
  ['diff', 'policy.yaml', 'policy.yaml'],
  ['recommend'],
  ['snapshot', '--out', 'snapshot.yaml'],
] as const;

/** `EBB_BENCH_PROJECTS=100` for another size. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`commands is left out: ${missing('redis-server')}\n`);
    return;
  }
  const projects = Number(process.env.EBB_BENCH_PROJECTS ?? PROJECTS);
  await times(projects);
  await beside(projects);
}

async function times(projects: number): Promise<void> {
  const dateIn = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
  const policy = `version: 1
policies:
  - name: nights
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, suspend_after: 5m }]
    otherwise: { suspend_after: 1m }
  - { name: proof, kind: trial, select: { projects: ["*"] }, of: [nights], control: 50%, from: ${dateIn(-3)}, until: ${dateIn(25)} }
`;
  const fleet = { projects, historyDays: HISTORY_DAYS, perMinute: PER_MINUTE };
  const stage = await startDaemon({ ...fleet, policy, env: { EBB_MODE: 'observe' } });
  const rows: string[][] = [];
  try {
    await untilKnown(stage, projects);
    await sleep(SETTLED_MS);
    for (const args of COMMANDS) {
      const medians: string[] = [];
      const codes = args[0] === 'explain' ? [1] : [0, 2];
      const before = await requestsOfCommands(stage);
      for (let round = 0; round < ROUNDS; round += 1) {
        const seconds: number[] = [];
        for (let each = 0; each < RUNS; each += 1)
          seconds.push(await runCommand(stage, args, { key: REFUSED_KEY, codes }));
        medians.push(percentile(seconds, 0.5).toFixed(2));
      }
      const asked = (await requestsOfCommands(stage)) - before;
      rows.push([args[0], `${medians.join(', ')} s`, String(asked)]);
    }
  } finally {
    await stage.close();
  }
  printTable([`${projects} projects`, `medians of ${RUNS}`, 'requests of all runs'], rows);
}

async function beside(projects: number): Promise<void> {
  const readMs = (projects * 60_000) / PER_MINUTE;
  const firstMs = Math.ceil((Date.now() + FIRST_AFTER_MS + readMs) / 1000) * 1000;
  const instants = Array.from({ length: 2 * ROUNDS }, (_, each) => firstMs + each * BETWEEN_MS);
  const policy = `version: 1\npolicies:\n${schedule('bench', instants)}`;
  const stage = await startDaemon({ projects, perMinute: PER_MINUTE, policy });
  const rows: string[][] = [];
  try {
    await untilKnown(stage, projects);
    for (const [each, instantMs] of instants.entries()) {
      const boundary = lateness(stage, instantMs, projects);
      const commands = each % 2 === 0 ? 0 : await loopUntil(stage, boundary);
      const figures = await boundary;
      const level = (await metricOf(stage.daemonUrl, 'ebb_api_limit_level')).toFixed(0);
      rows.push([commands === 0 ? 'alone' : `while ${commands} commands ran`, ...figures, level]);
    }
  } finally {
    await stage.close();
  }
  printTable([`a boundary of ${projects}`, 'changes', 'last', 'bound', '×', 'learnt level'], rows);
}

/** Runs all commands in turn until something has ended. Returns the number of commands. */
async function loopUntil(stage: Stage, something: Promise<unknown>): Promise<number> {
  let isOver = false;
  const stop = () => {
    isOver = true;
  };
  something.then(stop, stop);
  let commands = 0;
  // This fleet has neither a past nor a trial: `cost` and `savings` say so, and end with 1.
  for (; !isOver; commands += 1)
    await runCommand(stage, COMMANDS[commands % COMMANDS.length] ?? ['status'], { key: KEY, codes: [0, 1, 2] });
  return commands;
}

function runCommand(
  stage: Stage,
  args: readonly string[],
  { key, codes }: { key: string; codes: readonly number[] },
): Promise<number> {
  const env = { EBB_API_KEY: key, EBB_QUEUE_URL: stage.redisUrl, EBB_POLICIES: 'policy.yaml' };
  return secondsOf(stage, args, { env, codes });
}

/** The daemon's key is not refused. */
async function requestsOfCommands(stage: Stage): Promise<number> {
  return (await stage.requests()).filter(({ status }) => status === 401).length;
}
