import { z } from 'zod';
import type { ConnectionSample } from '../../ports/store.ts';
import { parseJson } from './parse-json.ts';

const Later = z.number().nullish();

/** Without names of fields, since there are many of them; what is absent at the end is left out. */
const StoredSamples = z.array(
  z.union([
    z.tuple([z.number(), z.number()]),
    z.tuple([z.number(), z.number(), Later]),
    z.tuple([z.number(), z.number(), Later, Later]),
    z.tuple([z.number(), z.number(), Later, Later, Later]),
    z.tuple([z.number(), z.number(), Later, Later, Later, z.string()]),
  ]),
);

/** The newest `most` samples as they are stored, oldest first. */
export function samplesToJson(samples: readonly ConnectionSample[], most: number): string {
  const newest = samples.toSorted((a, b) => a.atMs - b.atMs).slice(-most);
  return JSON.stringify(
    newest.map(({ atMs, connections, maxConnections, sinceMs, lookedAtMs, source }) => {
      const fields = [atMs, connections, maxConnections, sinceMs, lookedAtMs, source];
      return fields.slice(0, fields.findLastIndex((field) => field !== undefined) + 1);
    }),
  );
}

/** None for a text that this version can't read. */
export function readSamples(text: string | null | undefined): ConnectionSample[] {
  const stored = StoredSamples.safeParse(text ? parseJson(text) : undefined).data ?? [];
  return stored.map(([atMs, connections, maxConnections, sinceMs, lookedAtMs, source]) => ({
    ...{ atMs, connections },
    ...(maxConnections != null && { maxConnections }),
    ...(sinceMs != null && { sinceMs }),
    ...(lookedAtMs != null && { lookedAtMs }),
    ...(source !== undefined && { source }),
  }));
}
