import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import pLimit from 'p-limit';
import { createPostgresCounter } from '../adapters/connections/postgres.ts';
import { createPrometheusCounter } from '../adapters/connections/prometheus.ts';
import { createPrometheusRecord, type RangeOfTime } from '../adapters/connections/prometheus-range.ts';
import { createSender } from '../adapters/notifications/sender.ts';
import type { Result } from '../common/result.ts';
import type { RecordedCount } from '../domain/backtest/recording.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { messageOf } from '../domain/notifications/notification.ts';
import type { ConnectionSource, PrometheusSource, SecretPlace } from '../domain/policy/policy.ts';
import type { ConnectionCounter, ConnectionCounters, CountOutcome } from '../ports/connections.ts';
import type { Sender } from '../ports/outbox.ts';
import { destinationRefused } from '../settings/notify-schema.ts';
import { passwordsIn } from '../settings/schema.ts';
import type { Settings } from '../settings/settings.ts';

export interface CountersOptions {
  settings: Settings;
  /** Gets each secret that is read from a file, before it is used. */
  hide: (secret: string) => void;
  /** The time that the control API's instants are of. */
  now: () => number;
}

/** A file with a secret holds little else. */
const MOST_SECRET_BYTES = 16 * 1024;

/** The counters of sources as policies and settings define them. A source that was changed is another one. */
export function openCounters(options: CountersOptions): ConnectionCounters {
  const open = new Map<string, { key: string; counter: ConnectionCounter }>();
  return {
    of(source) {
      const key = JSON.stringify(source);
      const known = open.get(source.name);
      if (known?.key === key) return known.counter;
      void known?.counter.close();
      const counter = counterOf(source, options);
      open.set(source.name, { key, counter });
      return counter;
    },
    close: async () => void (await Promise.all([...open.values()].map(({ counter }) => counter.close()))),
  };
}

function counterOf(source: ConnectionSource, options: CountersOptions): ConnectionCounter {
  if (source.refused !== undefined) return refusing(source.refused);
  if (source.from === 'postgres') {
    const { dsn, file } = source;
    const readDsnText = dsn.from === 'text' ? async () => dsn.text : () => readSecret(dsn, file, options);
    return createPostgresCounter({ readDsnText, now: options.now });
  }
  const { url, query, token, file } = source;
  return createPrometheusCounter({ url, query, ...(token && { readToken: () => readSecret(token, file, options) }) });
}

function refusing(message: string): ConnectionCounter {
  const outcome: CountOutcome = { ok: false, error: { code: 'refused', message } };
  return {
    count: async (requests) => new Map(requests.map(({ compute }) => [compute.computeId, outcome])),
    close: async () => undefined,
  };
}

/** Read each time, so that what is rotated counts at once; what came from a variable stays until a restart. */
export async function readSecret(
  place: SecretPlace,
  file: string,
  { settings, hide }: Pick<CountersOptions, 'settings' | 'hide'>,
): Promise<string> {
  if (place.from === 'variable') {
    const variable = settings.sourceVariables.get(place.name);
    if (variable === undefined) throw new Error(`the variable ${place.name} is not set`);
    return variable.reveal();
  }
  const path = resolve(dirname(resolve(file)), place.path);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file ${place.path} can not be read (${error.code})`);
  });
  const value = text.trim();
  if (value === '' || value.length > MOST_SECRET_BYTES) throw new Error(`the file ${place.path} holds no secret`);
  for (const one of passwordsIn(value)) hide(one);
  return value;
}

const COMPUTES_AT_A_TIME = 4;

/**
 * Reads the past connections of computes, by id, from the Prometheus of a source; or one line that says why not. A compute without data
 * has no counts.
 */
export async function recordedByPrometheus(options: {
  settings: Settings;
  source: PrometheusSource;
  computes: readonly Compute[];
  range: RangeOfTime;
}): Promise<Result<ReadonlyMap<string, readonly RecordedCount[]>>> {
  const { settings, source, computes, range } = options;
  const { url, query, token, file, name, refused } = source;
  if (refused !== undefined) return { ok: false, problem: `source ${name}: ${refused}` };
  const readToken = token && (() => readSecret(token, file, { settings, hide: () => {} }));
  const record = createPrometheusRecord({ url, query, readToken });
  const counts = new Map<string, readonly RecordedCount[]>();
  const problems: string[] = [];
  try {
    await pLimit(COMPUTES_AT_A_TIME).map(computes, async (compute) => {
      const read = problems.length > 0 ? undefined : await record.of(compute, range);
      if (read?.ok) counts.set(compute.computeId, read.value);
      else if (read) problems.push(`source ${name}, ${compute.computeId}: ${read.error.message} (${read.error.code})`);
    });
  } finally {
    await record.close();
  }
  const [problem] = problems;
  return problem === undefined ? { ok: true, value: counts } : { ok: false, problem };
}

/** Sends to receivers as the settings define them; their secrets are read where they stand, each time. */
export function openSender(options: Pick<CountersOptions, 'settings' | 'hide'>): Sender {
  return createSender({
    readSecret: (place, file) => readSecret(place, file, options),
    refusedDestination: destinationRefused,
    // A signature is of real time, whatever time policies are about.
    nowMs: () => Date.now(),
  });
}

/** Sends a test message to a receiver of the settings; the problem says why it did not arrive. */
export async function sendTest(settings: Settings, name: string): Promise<Result<undefined>> {
  const { receivers } = settings.notify;
  const receiver = receivers.find((one) => one.name === name);
  const known = receivers.map((one) => one.name).join(', ') || 'none';
  if (!receiver) return { ok: false, problem: `is no receiver of "notify" in ebb.yaml; there are: ${known}` };
  const sender = openSender({ settings, hide: () => {} });
  const atMs = Date.now();
  const message = messageOf({
    id: `test:${atMs}`,
    kind: 'test',
    atMs,
    text: 'a test message of ebb: this receiver works',
  });
  try {
    const sent = await sender.send(
      receiver,
      { id: message.id, body: JSON.stringify(message) },
      new AbortController().signal,
    );
    return sent.ok ? { ok: true, value: undefined } : { ok: false, problem: sent.message };
  } finally {
    await sender.close();
  }
}
