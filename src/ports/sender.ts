import type { Receiver } from '../domain/notifications/receivers.ts';

/** `refused`: the receiver, or a rule of ours, will not take it as it is; other failures may pass. The message holds no secret. */
export type SendOutcome = { ok: true } | { ok: false; isRefused: boolean; message: string };

/** Takes messages to their receivers. */
export interface Sender {
  /** Sends one message, a JSON text, within 10 s; never throws. `id` is the same each time that the same message is sent. */
  send(receiver: Receiver, message: { id: string; body: string }, signal: AbortSignal): Promise<SendOutcome>;
  close(): Promise<void>;
}
