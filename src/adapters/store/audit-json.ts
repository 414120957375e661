import { randomBytes } from 'node:crypto';
import type { HistoryEntry } from '../../domain/records/history.ts';
import { historyToJson, readHistory } from './history-json.ts';

/** Grows with each entry of this process, so that entries of one instant stay in their order. */
let made = 0;

/** An entry of the audit as it is stored. An `id` that it has stays: nothing is stored twice. */
export interface StoredAudit {
  id: string;
  atMs: number;
  computeId: string;
  text: string;
}

export function auditToJson(entry: HistoryEntry, maxBytes: number): StoredAudit {
  made = (made + 1) % 36 ** 4;
  const id = entry.id ?? `${made.toString(36).padStart(4, '0')}${randomBytes(4).toString('hex')}`;
  const { atMs, computeId } = entry;
  return { id, atMs, computeId, text: historyToJson({ ...entry, id }, maxBytes) };
}

/** The position of an entry: entries are ordered by instant, then by id. */
export interface AuditPlace {
  atMs: number;
  id: string;
}

/** The page of entries whose places and texts these are, newest first; a text that this version can't read is left out. */
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
