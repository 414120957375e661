import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import pLimit from 'p-limit';
import { createPostgresCounter } from '../adapters/connections/postgres.ts';
import { createPrometheusCounter } from '../adapters/connections/prometheus.ts';
import { createPrometheusHistory } from '../adapters/connections/prometheus-range.ts';
import { createPrometheusSeries } from '../adapters/connections/prometheus-series.ts';
import { createSender } from '../adapters/notifications/sender.ts';
import { createGuardAsker, type GuardAnswer, type GuardQuestion } from '../app/guards/ask.ts';
import type { Result } from '../common/result.ts';
import type { RecordedCount } from '../domain/backtest/replay.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { messageOf } from '../domain/notifications/notification.ts';
import type { ConnectionSource, PolicySet, PrometheusSource, SecretPlace } from '../domain/policy/policy.ts';
import type { ConnectionCounter, ConnectionCounters, CountOutcome } from '../ports/connections.ts';
import type { SeriesRange, SeriesSource, SeriesSources } from '../ports/guards.ts';
import type { Sender } from '../ports/outbox.ts';
import { destinationRefused } from '../settings/notify-schema.ts';
import { secretPartsOf } from '../settings/secret.ts';
import type { Settings } from '../settings/settings.ts';

interface SecretOptions {
  settings: Settings;
  /** Called with each secret that is read from a file before its use, so that logs hide it. */
  hide: (secret: string) => void;
}

interface CountersOptions extends SecretOptions {
  /** Milliseconds since the epoch, by the clock of the control API, which is simulated in the demo. */
  now: () => number;
}

/** A longer file can't be a secret, so its path must be wrong. */
const MAX_SECRET_BYTES = 16 * 1024;

/** Opens the counters of the connection sources in policies and settings. */
export function openCounters(options: CountersOptions): ConnectionCounters {
  return bySource((source) => counterOf(source, options));
}

/** Opens each source on first use, and again after it was changed. */
function bySource<T extends { close(): Promise<void> }>(openSource: (source: ConnectionSource) => T) {
  const open = new Map<string, { definition: string; opened: T }>();
  return {
    of(source: ConnectionSource): T {
      const definition = JSON.stringify(source);
      const existing = open.get(source.name);
      if (existing?.definition === definition) return existing.opened;
      void existing?.opened.close();
      const opened = openSource(source);
      open.set(source.name, { definition, opened });
      return opened;
    },
    close: async () => void (await Promise.all([...open.values()].map(({ opened }) => opened.close()))),
  };
}

function counterOf(source: ConnectionSource, options: CountersOptions): ConnectionCounter {
  if (source.refused !== undefined) return refusing(source.refused);
  if (source.from === 'postgres') {
    const { dsn, file } = source;
    const readDsnText = dsn.from === 'text' ? async () => dsn.text : () => readSecret(dsn, file, options);
    return createPostgresCounter({ readDsnText, now: options.now });
  }
  const { query } = source;
  if (query === undefined) return refusing('it has no query, so it counts no connections');
  return createPrometheusCounter({ ...prometheusAt(source, options), query });
}

function prometheusAt({ url, token, file }: PrometheusSource, options: SecretOptions) {
  return { url, ...(token && { readToken: () => readSecret(token, file, options) }) };
}

/** Opens the sources of guards in policies and settings. */
export function openSeriesSources(options: SecretOptions): SeriesSources {
  return bySource((source) => seriesOf(source, options));
}

function seriesOf(source: ConnectionSource, options: SecretOptions): SeriesSource & { close(): Promise<void> } {
  const { refused } = source;
  if (refused === undefined && source.from === 'prometheus')
    return createPrometheusSeries(prometheusAt(source, options));
  const answer = async () =>
    ({ ok: false, error: { code: 'refused', message: refused ?? 'a guard needs a Prometheus source' } }) as const;
  return { latest: answer, range: answer, close: async () => undefined };
}

function refusing(message: string): ConnectionCounter {
  const outcome: CountOutcome = { ok: false, error: { code: 'refused', message } };
  return {
    count: async (requests) => new Map(requests.map(({ compute }) => [compute.computeId, outcome])),
    close: async () => undefined,
  };
}

/** Reads a secret anew each time, so that a rotated file takes effect at once. Variables stay until a restart. */
export async function readSecret(place: SecretPlace, file: string, { settings, hide }: SecretOptions): Promise<string> {
  if (place.from === 'variable') {
    const variable = settings.sourceVariables.get(place.name);
    if (variable === undefined) throw new Error(`the variable ${place.name} is not set`);
    return variable.reveal();
  }
  const path = resolve(dirname(resolve(file)), place.path);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file ${place.path} cannot be read (${error.code})`);
  });
  const value = text.trim();
  if (value === '' || value.length > MAX_SECRET_BYTES) throw new Error(`the file ${place.path} holds no secret`);
  for (const one of secretPartsOf(value)) hide(one);
  return value;
}

const COMPUTES_AT_A_TIME = 4;

/** Reads the past connection counts of computes, by id, from the Prometheus of a source. */
export async function recordedByPrometheus(options: {
  settings: Settings;
  source: PrometheusSource;
  computes: readonly Compute[];
  range: SeriesRange;
}): Promise<Result<ReadonlyMap<string, readonly RecordedCount[]>>> {
  const { settings, source, computes, range } = options;
  const { query, name, refused } = source;
  if (refused !== undefined) return { ok: false, problem: `source ${name}: ${refused}` };
  if (query === undefined) return { ok: false, problem: `source ${name}: it has no query` };
  const history = createPrometheusHistory({ ...prometheusAt(source, { settings, hide: () => {} }), query });
  const counts = new Map<string, readonly RecordedCount[]>();
  const problems: string[] = [];
  try {
    await pLimit(COMPUTES_AT_A_TIME).map(computes, async (compute) => {
      const read = problems.length > 0 ? undefined : await history.counts(compute, range);
      if (read?.ok) counts.set(compute.computeId, read.value);
      else if (read) problems.push(`source ${name}, ${compute.computeId}: ${read.error.message} (${read.error.code})`);
    });
  } finally {
    await history.close();
  }
  const [problem] = problems;
  return problem === undefined ? { ok: true, value: counts } : { ok: false, problem };
}

/** Asks a guard once, from this machine. */
export async function testGuard(
  settings: Settings,
  { guard, set, computes, nowMs }: Pick<GuardQuestion, 'guard' | 'computes' | 'nowMs'> & { set: PolicySet },
): Promise<GuardAnswer> {
  const source = set.sources.get(guard.source);
  if (!source) throw new Error(`guard ${guard.name} without a source`);
  const sources = openSeriesSources({ settings, hide: () => {} });
  try {
    const signal = new AbortController().signal;
    return await createGuardAsker(sources).ask({ guard, source, computes, nowMs, signal });
  } finally {
    await sources.close();
  }
}

/** Opens a sender to the receivers in the settings. The sender reads their secrets anew for each message. */
export function openSender(options: SecretOptions): Sender {
  return createSender({
    readSecret: (place, file) => readSecret(place, file, options),
    refusedDestination: destinationRefused,
    // Signatures have the real time, even if policies follow a simulated clock.
    nowMs: () => Date.now(),
  });
}

/** Sends a test message to a receiver of the settings. The problem says why the message did not arrive. */
export async function sendTest(settings: Settings, name: string): Promise<Result<undefined>> {
  const { receivers } = settings.notify;
  const receiver = receivers.find((one) => one.name === name);
  const names = receivers.map((one) => one.name).join(', ') || 'none';
  if (!receiver) return { ok: false, problem: `is not a receiver of "notify" in ebb.yaml; there are: ${names}` };
  const sender = openSender({ settings, hide: () => {} });
  const atMs = Date.now();
  const text = 'a test message of ebb: this receiver works';
  const message = messageOf({ id: `test:${atMs}`, kind: 'test', atMs, text });
  const body = JSON.stringify(message);
  try {
    const sent = await sender.send(receiver, { id: message.id, body }, new AbortController().signal);
    return sent.ok ? { ok: true, value: undefined } : { ok: false, problem: sent.message };
  } finally {
    await sender.close();
  }
}
