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
  /** Ids and instants (milliseconds since the epoch) of recently written lines, for at least a day. */
  written(): Promise<Map<string, number>>;
  /**
   * Appends in order. False if it stopped early, because of the signal or another daemon that writes now. Some lines may be written even if
   * it rejects.
   */
  append(lines: readonly AuditLine[], stopped: AbortSignal): Promise<boolean>;
}
