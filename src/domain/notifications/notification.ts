/** The kinds of notifications. docs/how-to-notifications.md describes each. */
export const NOTIFICATION_KINDS = {
  change_coming: 'a change that disconnects clients is coming, with the command that holds it',
  connections_dropped: 'a change has disconnected clients',
  raised_by_critical: 'few connections were left free, so the size was raised at once',
  manual_change: 'somebody else has changed what ebb had applied',
  staged: 'a policy set waits for approval',
  freeze: 'a person has frozen computes',
  degraded: 'changes of a compute keep failing',
  budget_step: 'a budget has reached a step',
  spend_anomaly: 'an owner has spent far more in a day than is usual',
  key_refused: 'the control API refuses the key of an account',
  digest: 'what changed in a week, what it cost, and what was saved',
  test: 'a message of `ebb notify test`',
} as const;

export type NotificationKind = keyof typeof NOTIFICATION_KINDS;

/** One thing that people are told. It never holds a secret. */
export interface Notification {
  /** The same each time that the same thing is found: what has been queued by this id is not queued again. */
  id: string;
  kind: NotificationKind;
  /** When it happened or was found, milliseconds since the epoch. */
  atMs: number;
  /** A sentence for people. */
  text: string;
  /** Absent for what concerns the whole fleet. */
  owner?: string;
  projectId?: string;
  projectName?: string;
  computeId?: string;
  policy?: string;
  /** The command that prevents or answers it. */
  command?: string;
  /** Receivers that a policy names: they get it, whatever else they take. */
  receivers?: readonly string[];
}
