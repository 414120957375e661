/** What `ebb awake` and `ebb recommend` take for half a year of operations of a large fleet: time and memory of the whole command, on one core. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { OPERATIONS_HEADER } from '../src/domain/awake/operations-csv.ts';
import { seededRandom } from '../src/domain/random.ts';
import { SECOND } from '../test/support/demand.ts';
import { makeFolder } from '../test/support/platform.ts';
import { findProgram } from '../test/support/programs.ts';
import { printTable } from './figures.ts';

const ROWS = 20_000_000;
const PROJECTS = 1_000;
const DAYS = 180;
const TO_MS = Date.parse('2026-11-01T00:00:00Z');
/** A visit has two rows. */
const VISITS = ROWS / PROJECTS / 2;
const STEP_MS = (DAYS * 86_400_000) / VISITS;
const SEED = 1;

/** Says at its end what the process took. */
const REPORT = `data:text/javascript,process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  process.stderr.write('took ' + JSON.stringify({ cpuMs: (userCPUTime + systemCPUTime) / 1000, peakKb: maxRSS }) + '\\n');
})`;

/** Writes the file once, and has each command read it: rows are the same for the same seed. */
export async function run(): Promise<void> {
  const folder = await makeFolder({ 'fleet.json': fleet(), 'ebb.yaml': 'plan: scale\n' });
  try {
    await writeOperations(join(folder.path, 'operations.csv'));
    const rows: string[][] = [];
    for (const command of ['awake', 'recommend'])
      rows.push([`ebb ${command}`, ...(await measure(command, folder.path))]);
    printTable([`${ROWS.toLocaleString('en')} operations of ${PROJECTS} projects`, 'CPU', 'time', 'peak memory'], rows);
  } finally {
    await folder.remove();
  }
}

async function measure(command: string, cwd: string): Promise<string[]> {
  const files = ['--operations', 'operations.csv', '--fleet', 'fleet.json', '--days', String(DAYS), '--json'];
  const args = ['--import', REPORT, join(import.meta.dirname, '../dist/cli/main.js'), command, ...files];
  const oneCore = findProgram('taskset') === undefined ? [] : ['taskset', '-c', '0'];
  const [program = process.execPath, ...rest] = [...oneCore, process.execPath, ...args];
  const startedMs = performance.now();
  const child = spawn(program, rest, { cwd, env: { PATH: process.env.PATH }, stdio: ['ignore', 'ignore', 'pipe'] });
  const stderr = await endOf(child);
  const seconds = (performance.now() - startedMs) / 1000;
  const { cpuMs, peakKb } = JSON.parse(/^took (.+)$/m.exec(stderr)?.[1] ?? '{}');
  return [`${(cpuMs / 1000).toFixed(1)} s`, `${seconds.toFixed(1)} s`, `${Math.round(peakKb / 1000)} MB`];
}

async function endOf(child: ChildProcess): Promise<string> {
  let stderr = '';
  child.stderr?.on('data', (piece) => {
    stderr += piece;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`it ended with ${code}: ${stderr}`);
  return stderr;
}

function fleet(): string {
  const projects = Array.from({ length: PROJECTS }, (_, project) => ({
    ...{ id: projectId(project), name: projectId(project), region_id: 'aws-eu-central-1', pg_version: 17 },
    computes: [0, 1].map((index) => ({
      ...{ id: computeId(project, index), branch_id: `br-${project}-${index}`, type: 'read_write', state: 'idle' },
      ...{ min_cu: 0.25, max_cu: 2, suspend_timeout_seconds: 300 },
    })),
  }));
  return JSON.stringify({ taken_at: new Date(TO_MS).toISOString(), projects });
}

const projectId = (project: number) => `project-name-${String(project).padStart(6, '0')}`;
const computeId = (project: number, index: number) => `ep-quiet-water-${String(project).padStart(5, '0')}${index}`;

/** Each project's visits go to its two computes in turn, newest first; after each the timeout of five minutes passes. */
async function writeOperations(file: string): Promise<void> {
  const out = await open(file, 'w');
  try {
    const random = seededRandom(SEED);
    await out.write(`${OPERATIONS_HEADER}\n`);
    for (let project = 0; project < PROJECTS; project += 1) await out.write(rowsOf(project, random));
  } finally {
    await out.close();
  }
}

function rowsOf(project: number, random: () => number): string {
  const ids = [0, 1].map((index) => `${projectId(project)},${computeId(project, index)}`);
  const rows: string[] = [];
  for (let visit = 0; visit < VISITS; visit += 1) {
    const suspendedMs = TO_MS - STEP_MS * (visit + 0.3 * random());
    const startedMs = suspendedMs - 300 * SECOND - 0.4 * STEP_MS * random();
    rows.push(`${ids[visit % 2]},suspend_compute,finished,${instant(suspendedMs)},${Math.round(300 + 400 * random())}`);
    rows.push(`${ids[visit % 2]},start_compute,finished,${instant(startedMs)},${Math.round(500 + 900 * random())}`);
  }
  return `${rows.join('\n')}\n`;
}

const instant = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
