/** What people are shown of notifications that wait, or could not be sent, and what they may do with these. */

export interface QueuedNotificationDocument {
  id: string;
  receiver: string;
  state: 'waiting' | 'dead';
  /** How often it was tried in vain. */
  tries: number;
  /** Why it failed last. */
  error: string | null;
  at: string;
  /** What it tells. */
  text: string;
}

export interface NotificationsDocument {
  receivers: { receiver: string; waiting: number; dead: number; oldest_at: string | null }[];
  /** How many were lost because more came than the store keeps. */
  lost: number;
  /** Of each receiver the oldest: dead ones first. */
  notifications: QueuedNotificationDocument[];
}

export interface RetryOrDropNotifications {
  /** Sends dead ones again, or forgets what is dead or waits. */
  action: 'retry' | 'drop';
  /** A receiver, of which all dead ones are meant; or the id of one notification. */
  target: string;
}

export interface NotificationIdsDocument {
  ids: string[];
}
