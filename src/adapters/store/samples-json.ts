import { z } from 'zod';
import { parseJson } from '../../common/parse-json.ts';
import type { ConnectionSample } from '../../ports/store.ts';

const Optional = z.number().nullish();

/**
 * Without names of fields, since there are many of them; what is absent at the end is left out. Times are differences, in
 * milliseconds: of a sample to the one before, and what is told besides to the sample's own.
 */
const StoredSamples = z.array(
  z.union([
    z.tuple([z.number(), z.number()]),
    z.tuple([z.number(), z.number(), Optional]),
    z.tuple([z.number(), z.number(), Optional, Optional]),
    z.tuple([z.number(), z.number(), Optional, Optional, Optional]),
    z.tuple([z.number(), z.number(), Optional, Optional, Optional, z.string()]),
  ]),
);

/** The newest `most` samples as they are stored, oldest first. */
export function samplesToJson(samples: readonly ConnectionSample[], most: number): string {
  const newest = samples.toSorted((a, b) => a.atMs - b.atMs).slice(-most);
  return JSON.stringify(
    newest.map(({ atMs, connections, maxConnections, sinceMs, lookedAtMs, source }, at) => {
      const fromSample = (ms: number | undefined) => (ms === undefined ? undefined : ms - atMs);
      const fields = [
        atMs - (newest[at - 1]?.atMs ?? 0),
        ...[connections, maxConnections, fromSample(sinceMs), fromSample(lookedAtMs), source],
      ];
      return fields.slice(0, fields.findLastIndex((field) => field !== undefined) + 1);
    }),
  );
}

/** None for a text that this version can't read. */
export function readSamples(text: string | null | undefined): ConnectionSample[] {
  const stored = StoredSamples.safeParse(text ? parseJson(text) : undefined).data ?? [];
  let atMs = 0;
  return stored.map(([byMs, connections, maxConnections, sinceByMs, lookedAtByMs, source]) => {
    atMs += byMs;
    return {
      ...{ atMs, connections },
      ...(maxConnections != null && { maxConnections }),
      ...(sinceByMs != null && { sinceMs: atMs + sinceByMs }),
      ...(lookedAtByMs != null && { lookedAtMs: atMs + lookedAtByMs }),
      ...(source !== undefined && { source }),
    };
  });
}
