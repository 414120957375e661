import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { HISTORY_KINDS, type HistoryEntry } from '../../domain/records/history.ts';
import type { ConnectionSample } from '../../ports/store.ts';
import { SomeSettings } from './record-json.ts';

export const StoredEntry = z.looseObject({
  atMs: z.number(),
  projectId: z.string(),
  computeId: z.string(),
  kind: z.enum(HISTORY_KINDS),
  policy: z.string().exactOptional(),
  setHash: z.string(),
  revision: z.string().exactOptional(),
  from: SomeSettings.exactOptional(),
  to: SomeSettings.exactOptional(),
  reasons: z.array(z.looseObject({ code: z.string(), policy: z.string().exactOptional(), message: z.string() })),
  who: z.string().exactOptional(),
  verified: z.literal(true).exactOptional(),
  requestId: z.string().exactOptional(),
  owner: z.string().exactOptional(),
  id: z.string().exactOptional(),
}) satisfies z.ZodType<HistoryEntry>;

/** Numbers of reasons, and of characters of each text, tried in turn until an entry fits. */
const CUTS = [
  { reasons: 8, characters: 300 },
  { reasons: 6, characters: 100 },
  { reasons: 3, characters: 40 },
  { reasons: 1, characters: 40 },
  { reasons: 0, characters: 20 },
] as const;

/** An entry as JSON, shortened if it has more than `maxBytes`. */
export function historyToJson(entry: HistoryEntry, maxBytes: number): string {
  const whole = JSON.stringify(entry);
  if (Buffer.byteLength(whole) <= maxBytes) return whole;
  const shorter = CUTS.map((cut) => JSON.stringify(shorten(entry, cut)));
  return shorter.find((text) => Buffer.byteLength(text) <= maxBytes) ?? shorter.at(-1) ?? whole;
}

function shorten(entry: HistoryEntry, cut: (typeof CUTS)[number]): HistoryEntry {
  const { policy, revision, who, requestId, owner } = entry;
  const clip = (text: string) => Array.from(text).slice(0, cut.characters).join('');
  return {
    ...entry,
    ...(policy !== undefined && { policy: clip(policy) }),
    ...(revision !== undefined && { revision: clip(revision) }),
    ...(who !== undefined && { who: clip(who) }),
    ...(requestId !== undefined && { requestId: clip(requestId) }),
    ...(owner !== undefined && { owner: clip(owner) }),
    reasons: entry.reasons.slice(0, cut.reasons).map((reason) => ({
      ...reason,
      ...(reason.policy !== undefined && { policy: clip(reason.policy) }),
      message: clip(reason.message),
    })),
  };
}

/** The present names of reason codes that ebb 0.1.0 stored under other names. */
const FORMER_CODES: Readonly<Record<string, string>> = {
  no_opinion: 'no_value',
  first_sight: 'newly_discovered',
  thawed: 'unfrozen',
};

/** Undefined for a text that this version can't parse. */
export function readHistory(text: string): HistoryEntry | undefined {
  const entry = StoredEntry.safeParse(parseJson(text)).data;
  const reasons = entry?.reasons.map((reason) => ({ ...reason, code: FORMER_CODES[reason.code] ?? reason.code }));
  return entry && reasons && { ...entry, reasons };
}

/** At most `limit`; entries of one instant keep their order. */
export function newestFirst(entries: readonly HistoryEntry[], limit: number): HistoryEntry[] {
  return entries.toSorted((a, b) => b.atMs - a.atMs).slice(0, limit);
}

const Optional = z.number().nullish();

/**
 * Samples are stored compactly, since there are many: as arrays without absent values at the end. A sample's instant is stored in milliseconds
 * after the previous sample's; its other instants are relative to its own.
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

/** The newest `most` samples as JSON, oldest first. */
export function samplesToJson(samples: readonly ConnectionSample[], most: number): string {
  const newest = samples.toSorted((a, b) => a.atMs - b.atMs).slice(-most);
  return JSON.stringify(
    newest.map(({ atMs, connections, maxConnections, sinceMs, countedAtMs, source }, at) => {
      const fromSample = (ms: number | undefined) => (ms === undefined ? undefined : ms - atMs);
      const fields = [
        atMs - (newest[at - 1]?.atMs ?? 0),
        connections,
        maxConnections,
        fromSample(sinceMs),
        fromSample(countedAtMs),
        source,
      ];
      return fields.slice(0, fields.findLastIndex((field) => field !== undefined) + 1);
    }),
  );
}

/** Empty for a text that this version can't parse. */
export function readSamples(text: string | null | undefined): ConnectionSample[] {
  const stored = StoredSamples.safeParse(text ? parseJson(text) : undefined).data ?? [];
  let atMs = 0;
  return stored.map(([byMs, connections, maxConnections, sinceByMs, countedAtByMs, source]) => {
    atMs += byMs;
    return {
      atMs,
      connections,
      ...(maxConnections != null && { maxConnections }),
      ...(sinceByMs != null && { sinceMs: atMs + sinceByMs }),
      ...(countedAtByMs != null && { countedAtMs: atMs + countedAtByMs }),
      ...(source !== undefined && { source }),
    };
  });
}

/** Begins each new id, so that a process's entries of one instant keep their order. */
let sequence = 0;

/** Keeps an existing `id`: by it Postgres and copies of the audit recognize an entry that they already have. */
export function auditToJson(entry: HistoryEntry, maxBytes: number) {
  sequence = (sequence + 1) % 36 ** 4;
  const id = entry.id ?? `${sequence.toString(36).padStart(4, '0')}${randomBytes(4).toString('hex')}`;
  const { atMs, computeId } = entry;
  return { id, atMs, computeId, text: historyToJson({ ...entry, id }, maxBytes) };
}

/** The position of an entry in the order by instant, then by id. */
export interface AuditPlace {
  atMs: number;
  id: string;
}

/** A page of entries, newest first, without those that this version can't parse. */
export function auditPage(rows: readonly (AuditPlace & { text: string })[], limit: number) {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    entries: page.flatMap(({ text }) => readHistory(text) ?? []),
    ...(last && page.length === limit && { next: `${last.atMs}/${last.id}` }),
  };
}

/** Parses the cursor `next`; undefined for the first page and for an invalid cursor. */
export function auditPlace(next: string | undefined): AuditPlace | undefined {
  const [atMs, id] = next?.split('/', 2) ?? [];
  return id === undefined || !Number.isFinite(Number(atMs)) ? undefined : { atMs: Number(atMs), id };
}
