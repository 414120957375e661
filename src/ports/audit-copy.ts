import type { DecisionDocument } from './documents.ts';

export interface AuditLine {
  id: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  document: DecisionDocument;
}

/** A copy of the audit outside of the store. */
export interface AuditCopy {
  /** False while nothing can be written; asked before each line. */
  isReady(): boolean;
  /** The lines written in the last day or longer: instants (milliseconds since the epoch) by id. */
  written(): Promise<Map<string, number>>;
  /** Appends in order. False if not all were written: the signal aborted, or another daemon is writing. Before a rejection, some may be. */
  append(lines: readonly AuditLine[], stopped: AbortSignal): Promise<boolean>;
}
