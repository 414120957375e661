import type { SecretPlace } from '../policy/policy.ts';
import { isoInstant } from '../time/units.ts';

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

/** One notification. It never contains a secret. */
export interface Notification {
  /** The same each time that the same event is found: an id is queued once. */
  id: string;
  kind: NotificationKind;
  /** When it happened or was found, milliseconds since the epoch. */
  atMs: number;
  /** A sentence for people. */
  text: string;
  /** Absent for messages about the whole fleet. */
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

/** The JSON that a webhook gets; schema/notification.schema.json describes it. */
export interface MessageDocument {
  version: 1;
  id: string;
  kind: NotificationKind;
  at: string;
  text: string;
  owner: string | null;
  project: { id: string; name: string } | null;
  compute: string | null;
  policy: string | null;
  command: string | null;
}

/** Texts are cut to this many characters: no message is larger than 4 KB. */
const MOST_TEXT = 1000;
const MOST_NAME = 200;

/** A notification as it is sent. */
export function messageOf(notification: Notification): MessageDocument {
  const { id, kind, atMs, text, owner, projectId, projectName, computeId, policy, command } = notification;
  return {
    ...{ version: 1, id, kind, at: isoInstant(atMs), text: cut(text, MOST_TEXT) },
    owner: owner === undefined ? null : cut(owner, MOST_NAME),
    project: projectId === undefined ? null : { id: projectId, name: cut(projectName ?? projectId, MOST_NAME) },
    compute: computeId ?? null,
    policy: policy ?? null,
    command: command ?? null,
  };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** A receiver of notifications, as the settings define it. Secrets are only named here, never held. */
export interface Receiver {
  name: string;
  to: 'webhook' | 'slack';
  url: SecretPlace | { from: 'text'; text: string };
  /** The key that signs a webhook's messages. */
  secret?: SecretPlace;
  /** Origins that may receive messages besides this machine, such as `https://hooks.example`. */
  allowedOrigins: readonly string[];
  /** The settings file; relative paths in it start from its folder. */
  file: string;
  /** Takes only messages about computes of these owners; absent: everything, also about the whole fleet. */
  owners?: readonly string[];
  /** Takes only these; absent: all kinds. */
  kinds?: readonly NotificationKind[];
}

/** The settings of notifications. */
export interface NotifyRules {
  receivers: readonly Receiver[];
  /** Lead of notifications about changes that disconnect clients, for policies without one; absent: there are none. */
  beforeMs?: number;
}

/** The receivers of a notification: those that take its owner and kind, and those that its policy names. */
export function receiversOf(
  receivers: readonly Receiver[],
  { kind, owner, receivers: named = [] }: Pick<Notification, 'kind' | 'owner' | 'receivers'>,
): Receiver[] {
  return receivers.filter(
    ({ name, owners, kinds }) =>
      named.includes(name) ||
      ((owners === undefined || (owner !== undefined && owners.includes(owner))) && (kinds?.includes(kind) ?? true)),
  );
}
