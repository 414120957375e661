import { join } from 'node:path';
import pLimit from 'p-limit';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { createClientSampler } from '../adapters/connections/client-sampler.ts';
import { readDsn } from '../adapters/connections/postgres.ts';
import { refusalFor } from '../adapters/connections/session.ts';
import { createAskedFile } from '../adapters/store/local-files.ts';
import { UNHURRIED_DEADLINE_MS } from '../app/fleet/read-fleet.ts';
import { askPostgres } from '../app/recommend/ask-postgres.ts';
import { isLoopbackHost } from '../common/loopback.ts';
import type { Result } from '../common/result.ts';
import type { AskedPostgres } from '../domain/awake/clients.ts';
import type { Compute } from '../domain/compute/compute.ts';
import type { ConnectionSource } from '../domain/policy/policy.ts';
import { DAY_MS } from '../domain/time/units.ts';
import type { ControlApi, ControlApiError } from '../ports/control-api.ts';
import type { Settings } from '../settings/settings.ts';
import { openForReading } from './reading.ts';
import { readSecret } from './sources-and-receivers.ts';

const ASKED_FILE = 'asked-postgres.json';
/** A run asks at most this many computes. It asks all of them at the same time, since each takes minutes. */
export const MAX_ASKED = 20;
/** A compute is sampled this often within `spanMs`, or less often if samples would be less than `MIN_EVERY_MS` apart. */
const SAMPLES = 90;
const MIN_EVERY_MS = 100;

interface AskComputesOptions {
  settings: Settings;
  computes: readonly Compute[];
  /** The connection string, or the source that has it. */
  from: { dsn: string } | { source: ConnectionSource };
  spanMs: number;
  signal: AbortSignal;
  onProgress: (progress: { samples: number; of: number; computes: number }) => void;
}

/** Answers and problems by compute id. */
export interface AskedComputes {
  asked: ReadonlyMap<string, AskedPostgres>;
  problems: ReadonlyMap<string, string>;
  notes: readonly string[];
}

/** Asks the Postgres of these computes who keeps them awake, unless there is an answer of the last 24 hours. */
export async function askComputes(options: AskComputesOptions): Promise<Result<AskedComputes>> {
  const { settings, computes, spanMs, signal, onProgress } = options;
  const opened = await openForReading({ settings, live: true });
  if (!opened.ok) return opened;
  const { api, explain, close } = opened.value;
  const clock = systemClock();
  const file = createAskedFile(join(settings.stateDir, ASKED_FILE));
  const stored = await file.read();
  const asked = new Map<string, AskedPostgres>();
  const problems = new Map<string, string>();
  const fresh = new Map<string, AskedPostgres>();
  const samplesTaken = new Map<string, number>();
  const tryToWrite = (answers: ReadonlyMap<string, AskedPostgres>) =>
    file.write(answers).then(
      () => true,
      () => false,
    );
  const askOne = async (compute: Compute) => {
    const { computeId } = compute;
    const before = stored.get(computeId);
    if (before && isCurrent(before, clock.now())) return asked.set(computeId, before);
    const config = await configOf(options, compute);
    if (!config.ok) return problems.set(computeId, config.problem);
    const result = await askPostgres({
      compute,
      clock,
      signal,
      spanMs,
      everyMs: Math.max(MIN_EVERY_MS, spanMs / SAMPLES),
      sampler: createClientSampler(config.value),
      readCompute: () => readCompute(api, compute, explain),
      onSample(samples) {
        samplesTaken.set(computeId, samples);
        onProgress({ samples: Math.min(...samplesTaken.values()), of: SAMPLES, computes: samplesTaken.size });
      },
    });
    if (!result.ok) return problems.set(computeId, result.problem);
    fresh.set(computeId, result.value);
    return asked.set(computeId, result.value);
  };
  try {
    await pLimit(MAX_ASKED).map(computes, askOne);
    const isKept = fresh.size === 0 || (await tryToWrite(withFresh(await file.read(), fresh, clock.now())));
    const notes = isKept ? [] : [`${settings.stateDir} can't be written: the answers are not kept for the day`];
    return { ok: true, value: { asked, problems, notes } };
  } finally {
    await close();
  }
}

/** True for a complete answer of the last 24 hours. Such an answer is shown, and the compute is not asked again. */
function isCurrent({ atMs, until }: AskedPostgres, nowMs: number): boolean {
  const ageMs = nowMs - atMs;
  return until !== 'interrupted' && until !== 'failed' && ageMs >= 0 && ageMs < DAY_MS;
}

/** The answers to store: new ones, and stored ones of the last 24 hours, which other commands may have written meanwhile. */
function withFresh(
  stored: ReadonlyMap<string, AskedPostgres>,
  fresh: ReadonlyMap<string, AskedPostgres>,
  nowMs: number,
) {
  return new Map([...[...stored].filter(([, { atMs }]) => Math.abs(nowMs - atMs) < DAY_MS), ...fresh]);
}

/** Returns when each Postgres was last asked, by compute id. If `isAnswered` is true, its answer is recent and complete, and is shown. */
export async function askedBefore(
  settings: Settings,
): Promise<ReadonlyMap<string, { atMs: number; isAnswered: boolean }>> {
  const stored = await createAskedFile(join(settings.stateDir, ASKED_FILE)).read();
  return new Map([...stored].map(([id, one]) => [id, { atMs: one.atMs, isAnswered: isCurrent(one, Date.now()) }]));
}

/** The computes to which a connection string may lead: those on its host, or all if it leads to this machine. Problems never contain the string. */
export async function computesOf(dsn: string, computes: readonly Compute[]): Promise<Result<Compute[]>> {
  const config = await readDsn(dsn, undefined);
  if (!config.ok) return { ok: false, problem: config.error.message };
  const reached = computes.filter(({ host }) => refusalFor(config.value, host) === undefined);
  if (reached.length > 0) return { ok: true, value: reached };
  const problem = refusalFor(config.value, computes[0]?.host) ?? 'there is no compute that it could lead to';
  return { ok: false, problem: problem.replace('the compute of this project', 'any of these computes') };
}

async function configOf({ settings, from, computes }: AskComputesOptions, compute: Compute) {
  try {
    const config = await readDsn('dsn' in from ? from.dsn : await dsnTextOf(from.source, settings), compute.host);
    if (!config.ok) return { ok: false as const, problem: config.error.message };
    const problem =
      refusalFor(config.value, compute.host) ??
      (computes.length > 1 && isLoopbackHost(config.value.host ?? '')
        ? 'the source leads to this machine: name the one compute that it belongs to'
        : undefined);
    return problem === undefined ? config : { ok: false as const, problem };
  } catch (error) {
    return { ok: false as const, problem: error instanceof Error ? error.message : 'it has no secret' };
  }
}

async function dsnTextOf(source: ConnectionSource, settings: Settings): Promise<string> {
  if (source.refused !== undefined) throw new Error(source.refused);
  if (source.from !== 'postgres') throw new Error('it is not a postgres source');
  const { dsn, file } = source;
  return dsn.from === 'text' ? dsn.text : readSecret(dsn, file, { settings, hide: () => {} });
}

async function readCompute(
  api: Pick<ControlApi, 'listComputes'>,
  { account, projectId, projectName: name, computeId }: Compute,
  explain: (error: ControlApiError) => string,
): Promise<Result<Compute>> {
  const read = await api.listComputes({ account, projectId, name }, { deadlineMs: UNHURRIED_DEADLINE_MS });
  if (!read.ok) return { ok: false, problem: explain(read.error) };
  const found = read.value.computes.find((one) => one.computeId === computeId);
  return found ? { ok: true, value: found } : { ok: false, problem: 'the control API no longer lists it' };
}
