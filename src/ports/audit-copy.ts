import type { DecisionDocument } from './documents.ts';

export interface AuditLine {
  id: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  document: DecisionDocument;
}

/** A copy of audit lines besides the store. */
export interface AuditCopy {
  /** False if nothing can be written now; asked again before the next line. */
  isReady(): boolean;
  /** Ids of the lines that were written last, of a day at least, with their instants in milliseconds since the epoch. */
  written(): Promise<Map<string, number>>;
  /** In their order. False if only some were written, because another daemon does it now, or it was stopped; an error may follow some as well. */
  append(lines: readonly AuditLine[], stopped: AbortSignal): Promise<boolean>;
}
