import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { createPostgresCounter } from '../adapters/connections/postgres.ts';
import { createPrometheusCounter } from '../adapters/connections/prometheus.ts';
import type { ConnectionSource, SecretPlace } from '../domain/policy/policy.ts';
import type { ConnectionCounter, ConnectionCounters, CountOutcome } from '../ports/connections.ts';
import type { Settings } from '../settings/settings.ts';
import { passwordsIn } from '../settings/source-settings.ts';

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
