import type { Result } from '../../common/result.ts';
import type { ClientSample } from '../../domain/awake/client-activity.ts';
import {
  type AskedPostgres,
  type AskedUntil,
  awakeAfterMs,
  keptAwakeMs,
  lastOthersMs,
  nameClients,
  sessionFacts,
} from '../../domain/awake/clients.ts';
import { type Compute, NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ClientSampler } from '../../ports/connections.ts';

export interface AskOptions {
  compute: Compute;
  /** Reads the compute from the control API. */
  readCompute(): Promise<Result<Compute>>;
  sampler: ClientSampler;
  clock: Pick<Clock, 'now' | 'monotonicMs' | 'wait'>;
  /** The duration and the interval of sampling, milliseconds. */
  spanMs: number;
  everyMs: number;
  signal: AbortSignal;
  onSample?: (taken: number) => void;
}

/** A compute whose timeout ends within this time is not asked: it may fall asleep before ebb connects, which would wake it. */
const ABOUT_TO_SLEEP_MS = 5_000;
const MAX_FAILURES = 3;

/**
 * Samples the active clients in the Postgres of a compute while others keep it awake. It reads the compute's state before each sample, and keeps
 * no session open. It ends once all others have been gone for the timeout, so it prolongs the time awake by at most about one timeout.
 */
export async function askPostgres(options: AskOptions): Promise<Result<AskedPostgres>> {
  const { compute, sampler, clock } = options;
  const first = await options.readCompute();
  if (!first.ok) return first;
  const refusal = refusalOf(first.value, clock.now());
  if (refusal !== undefined) return { ok: false, problem: refusal };
  const { samples, until, problem } = await takeSamples(options);
  if (samples.length === 0) return { ok: false, problem: problem ?? 'stopped before the first sample' };
  const { suspendTimeoutSeconds } = compute;
  const sampled = { samples, texts: sampler.texts, timeoutMs: awakeAfterMs(suspendTimeoutSeconds) };
  return {
    ok: true,
    value: {
      atMs: clock.now(),
      clients: nameClients(sampled),
      sessions: sessionFacts(samples),
      samples: samples.length,
      sampledMs: (samples.at(-1)?.atMs ?? 0) - (samples[0]?.atMs ?? 0),
      keptAwakeMs: keptAwakeMs({ ...sampled, neverSuspends: suspendTimeoutSeconds === NEVER_SUSPENDS }),
      sawStatements: samples.some(({ calls }) => calls !== undefined),
      until,
    },
  };
}

function refusalOf(
  { state, pendingState, disabled, lastActiveAtMs, suspendTimeoutSeconds }: Compute,
  nowMs: number,
): string | undefined {
  if (state !== 'active' || pendingState !== undefined || disabled) {
    return 'it is asleep: it is not asked, since that would wake it; try again while it is awake';
  }
  if (suspendTimeoutSeconds === NEVER_SUSPENDS || lastActiveAtMs === undefined) return undefined;
  const sleepsAtMs = lastActiveAtMs + 1000 * suspendTimeoutSeconds;
  return sleepsAtMs - nowMs < ABOUT_TO_SLEEP_MS ? 'it is about to sleep: try again while somebody uses it' : undefined;
}

async function takeSamples(options: AskOptions): Promise<Taken> {
  const { compute, clock, spanMs, everyMs, signal, onSample } = options;
  const samples: ClientSample[] = [];
  const endMs = clock.monotonicMs() + spanMs;
  const timeoutMs = awakeAfterMs(compute.suspendTimeoutSeconds);
  let lastOthersAtMs = Number.NEGATIVE_INFINITY;
  let failures = 0;
  for (let atMs = clock.monotonicMs(); atMs < endMs; ) {
    await clock.wait(Math.max(0, atMs - clock.monotonicMs()), signal).catch(() => undefined);
    // Samples that a stall has prevented are not made up for: a burst of samples would show nothing more.
    atMs = Math.max(atMs, clock.monotonicMs()) + everyMs;
    const taken = await takeOne(options, samples.length === 0);
    if (typeof taken === 'string') return { samples, until: taken };
    if (!taken.ok) {
      failures += 1;
      if (samples.length === 0 || failures === MAX_FAILURES) return { samples, until: 'failed', ...taken };
      continue;
    }
    failures = 0;
    const sample = taken.value;
    // Until the first sample, somebody else has kept the compute awake.
    const beforeMs = samples.at(-1)?.atMs ?? sample.atMs;
    lastOthersAtMs = Math.max(lastOthersAtMs, lastOthersMs(sample, beforeMs), samples.length === 0 ? beforeMs : 0);
    samples.push(sample);
    onSample?.(samples.length);
    if (sample.atMs - lastOthersAtMs > timeoutMs) return { samples, until: 'alone' };
  }
  return { samples, until: 'time' };
}

interface Taken {
  samples: ClientSample[];
  until: AskedUntil;
  problem?: string;
}

/** Takes a sample if the compute is awake. Before the first sample, the caller has already checked that. */
async function takeOne(
  { readCompute, sampler, signal }: AskOptions,
  isFirst: boolean,
): Promise<Result<ClientSample> | 'interrupted' | 'asleep'> {
  if (signal.aborted) return 'interrupted';
  const read = isFirst ? undefined : await readCompute();
  if (read?.ok === false) return read;
  if (read && (read.value.state !== 'active' || read.value.pendingState !== undefined)) return 'asleep';
  const sample = await sampler.sample(signal);
  if (signal.aborted) return 'interrupted';
  return sample.ok ? sample : { ok: false, problem: sample.error.message };
}
