import type { SecretPlace } from '../policy/policy.ts';
import type { Notification, NotificationKind } from './notification.ts';

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
  /** Takes only what concerns computes of these owners; absent: everything, also what concerns the whole fleet. */
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
