import { z } from 'zod';
import type { ConnectionSample } from '../../ports/store.ts';
import { parseJson } from './parse-json.ts';

/** Without names of fields, since there are many of them. */
const StoredSamples = z.array(
  z.union([z.tuple([z.number(), z.number()]), z.tuple([z.number(), z.number(), z.number()])]),
);

/** The newest `most` samples as they are stored, oldest first. */
export function samplesToJson(samples: readonly ConnectionSample[], most: number): string {
  const newest = samples.toSorted((a, b) => a.atMs - b.atMs).slice(-most);
  return JSON.stringify(
    newest.map(({ atMs, connections, maxConnections }) =>
      maxConnections === undefined ? [atMs, connections] : [atMs, connections, maxConnections],
    ),
  );
}

/** None for a text that this version can't read. */
export function readSamples(text: string | null | undefined): ConnectionSample[] {
  const stored = StoredSamples.safeParse(text ? parseJson(text) : undefined).data ?? [];
  return stored.map(([atMs, connections, maxConnections]) =>
    maxConnections === undefined ? { atMs, connections } : { atMs, connections, maxConnections },
  );
}
