import { z } from 'zod';
import type { ConnectionSample } from '../../ports/store.ts';
import { parseJson } from './parse-json.ts';

/** Without names of fields, and each instant as the time since the one before it, since there are many of them. */
const StoredSamples = z.array(
  z.union([z.tuple([z.number(), z.number()]), z.tuple([z.number(), z.number(), z.number()])]),
);

/** The newest `most` samples as they are stored, oldest first. */
export function samplesToJson(samples: readonly ConnectionSample[], most: number): string {
  const newest = samples.toSorted((a, b) => a.atMs - b.atMs).slice(-most);
  return JSON.stringify(
    newest.map(({ atMs, connections, maxConnections }, index) => {
      const sinceMs = atMs - (newest[index - 1]?.atMs ?? 0);
      return maxConnections === undefined ? [sinceMs, connections] : [sinceMs, connections, maxConnections];
    }),
  );
}

/** None for a text that this version can't read. */
export function readSamples(text: string | null | undefined): ConnectionSample[] {
  const stored = StoredSamples.safeParse(text ? parseJson(text) : undefined).data ?? [];
  let atMs = 0;
  return stored.map(([sinceMs, connections, maxConnections]) => {
    atMs += sinceMs;
    return maxConnections === undefined ? { atMs, connections } : { atMs, connections, maxConnections };
  });
}
