import type { DecisionDocument } from './documents.ts';

/** Where lines of the audit are kept besides the store. */
export interface AuditFile {
  /** Ids of the lines that were written last, of a day at least, with their instants in milliseconds since the epoch. */
  written(): Promise<Map<string, number>>;
  /** In their order, all of them or an error. */
  append(lines: readonly DecisionDocument[]): Promise<void>;
}
