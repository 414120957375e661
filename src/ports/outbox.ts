/** One message for one receiver, on its way. */
export interface OutboxEntry {
  /** The same for the same message: what was appended by it is not appended again. At most 400 characters. */
  id: string;
  receiver: string;
  /** Entries of a receiver about the same subject, a compute say, are sent in the order in which they were appended. */
  subject: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  /** What is sent, without any secret: at most 4 KB. */
  body: string;
}

/** `dead`: it could not be sent, and waits for a person to try it again or to drop it. */
export type QueuedState = 'waiting' | 'dead';

export interface QueuedEntry extends OutboxEntry {
  state: QueuedState;
  /** How often it was tried in vain. */
  tries: number;
  /** Why it failed last. */
  error?: string;
}

/** What waits for one receiver. */
export interface OutboxCount {
  receiver: string;
  waiting: number;
  dead: number;
  /** When the oldest that waits was appended; absent if none does. Milliseconds since the epoch. */
  oldestAtMs?: number;
}

/**
 * Messages that must reach their receivers at least once. The newest 10,000 are remembered, sent or not: older ones that were not
 * sent are lost, and counted. On Postgres up to a hundredth more are remembered.
 */
export interface OutboxStore {
  /** Appends those whose id is not known, in their order. */
  appendOutbox(entries: readonly OutboxEntry[]): Promise<void>;
  /** What waits for a receiver, or is dead: oldest first. */
  outbox(query: { receiver: string; state: QueuedState; limit: number }): Promise<QueuedEntry[]>;
  /** By receiver, sorted by name, those for which something is there; and how many were lost since the store was made. */
  outboxCounts(): Promise<{ receivers: OutboxCount[]; lost: number }>;
  /** Notes a try in vain, and whether there will be another; false if the entry is not there. */
  deferOutbox(id: string, failure: { state: QueuedState; tries: number; error?: string }): Promise<boolean>;
  /** Removes what was sent, or what nobody wants to be sent any more; false if it is not there. */
  removeOutbox(id: string): Promise<boolean>;
}
