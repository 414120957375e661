import type { Receiver } from '../domain/notifications/notification.ts';

/** One message for one receiver, on its way. */
export interface OutboxEntry {
  /** The same for the same message: a known id is not appended again. At most 400 characters. */
  id: string;
  receiver: string;
  /** Entries of a receiver about the same subject, a compute say, are sent in the order in which they were appended. */
  subject: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  /** The message, without any secret: at most 4 KB. */
  body: string;
}

/** `dead`: it could not be sent, and waits for a person to try it again or to drop it. */
export type QueuedState = 'waiting' | 'dead';

export interface QueuedEntry extends OutboxEntry {
  state: QueuedState;
  /** The number of failed tries. */
  tries: number;
  /** Why it failed last. */
  error?: string;
}

/** The queue of one receiver. */
export interface OutboxCount {
  receiver: string;
  waiting: number;
  dead: number;
  /** When the oldest waiting message was appended; absent if there is none. Milliseconds since the epoch. */
  oldestAtMs?: number;
}

/**
 * Messages that must reach their receivers at least once. The newest 10,000 are remembered, sent or not: older ones that were not
 * sent are lost, and counted. On Postgres up to a hundredth more are remembered.
 */
export interface OutboxStore {
  /** Appends those whose id is not known, in their order. */
  appendOutbox(entries: readonly OutboxEntry[]): Promise<void>;
  /** Messages that wait for a receiver, or are dead: oldest first. */
  outbox(query: { receiver: string; state: QueuedState; limit: number }): Promise<QueuedEntry[]>;
  /** By receiver, sorted by name, those for which something is there; and how many were lost since the store was made. */
  outboxCounts(): Promise<{ receivers: OutboxCount[]; lost: number }>;
  /** Notes a failed try, and if there will be another; false if the entry is not there. */
  deferOutbox(id: string, failure: { state: QueuedState; tries: number; error?: string }): Promise<boolean>;
  /** Removes a message that was sent, or is not wanted any more; false if it is not there. */
  removeOutbox(id: string): Promise<boolean>;
}

/** `refused`: the receiver, or a rule of ours, will not take it as it is; other failures may pass. The message holds no secret. */
export type SendOutcome = { ok: true } | { ok: false; isRefused: boolean; message: string };

/** Takes messages to their receivers. */
export interface Sender {
  /** Sends one message, a JSON text, within 10 s; never throws. `id` is the same each time that the same message is sent. */
  send(receiver: Receiver, message: { id: string; body: string }, signal: AbortSignal): Promise<SendOutcome>;
  close(): Promise<void>;
}
