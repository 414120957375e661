import type { Receiver } from '../domain/notifications/notification.ts';

/** A message for one receiver. */
export interface OutboxEntry {
  /** Identifies the message: a known id is not appended again. At most 400 characters. */
  id: string;
  receiver: string;
  /** Such as a compute. A receiver's entries of one subject are sent in the order in which they were appended. */
  subject: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  /** Without any secret; at most 4 KB, or 150 KB if it lists changes that are coming. */
  body: string;
}

/** `dead`: it could not be sent, and waits for a person to retry or drop it. */
export type QueuedState = 'waiting' | 'dead';

export interface QueuedEntry extends OutboxEntry {
  state: QueuedState;
  /** The number of failed tries. */
  tries: number;
  /** The last failure. */
  error?: string;
}

/** The queue of one receiver. */
export interface OutboxCount {
  receiver: string;
  waiting: number;
  dead: number;
  /** The instant at which the oldest waiting message was appended, milliseconds since the epoch. */
  oldestAtMs?: number;
}

/**
 * Messages that must reach their receivers at least once. The newest 10,000 are kept, sent or not (on Postgres up to 1 % more): older ones
 * that were not sent are lost, and counted.
 */
export interface OutboxStore {
  /** Appends the messages whose ids are new, in order. */
  appendOutbox(entries: readonly OutboxEntry[]): Promise<void>;
  /** Oldest first. */
  outbox(query: { receiver: string; state: QueuedState; limit: number }): Promise<QueuedEntry[]>;
  /** Receivers with waiting or dead messages, sorted by name; and the number lost since the store was made. */
  outboxCounts(): Promise<{ receivers: OutboxCount[]; lost: number }>;
  /** Sets the state of an unsent message, its number of tries, and its last error; false if there is no such message. */
  updateOutbox(id: string, changes: { state: QueuedState; tries: number; error?: string }): Promise<boolean>;
  /** Ends a message that was sent or dropped: its id stays known, so that it is not appended again. False if there is none. */
  finishOutbox(id: string): Promise<boolean>;
}

/** `isRefused`: the receiver, or a rule of ebb, refuses the message as it is; other failures may pass. `message` holds no secret. */
export type SendOutcome = { ok: true } | { ok: false; isRefused: boolean; message: string };

export interface Sender {
  /** Sends one message, a JSON text, within 10 s; never throws. Retries of a message have the same `id`. */
  send(receiver: Receiver, message: { id: string; body: string }, signal: AbortSignal): Promise<SendOutcome>;
  close(): Promise<void>;
}
