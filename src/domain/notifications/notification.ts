import type { Compute, ComputeSettings } from '../compute/compute.ts';
import { fieldsJson } from '../evaluate/fleet-plan-json.ts';
import type { SecretPlace } from '../policy/policy.ts';
import type { Span } from '../time/span.ts';
import { isoInstant } from '../time/units.ts';

/** The kinds of notifications. docs/how-to-notifications.md describes each. */
export const NOTIFICATION_KINDS = {
  change_coming: 'changes of an owner, of which some disconnect clients, are coming at a boundary, or come late',
  connections_dropped: 'a change that no digest for the receiver had counted has disconnected clients, or may have',
  raised_by_critical: 'few connections were left free, so the size was raised at once',
  manual_change: 'somebody else has changed what ebb had applied',
  staged: 'a policy set waits for approval',
  policies_refused: 'policy files of a team, or of no team, can not be loaded, or can be loaded again',
  outage: 'what ebb needs, such as the control API, is not available for five minutes, or is available again',
  freeze: 'a person has frozen computes',
  hold: 'a person holds a compute, not by a token of the team that owns it',
  degraded: 'changes of a compute keep failing',
  guard: 'a guard is bad after a lowering, or its verdict is unknown',
  budget_step: 'a budget has reached a step',
  spend_anomaly: 'an owner has spent far more in a day than is usual',
  key_refused: 'the key of an account is refused or missing, or works again',
  digest: 'what changed in a week, what it cost, and what was saved',
  folded: 'several messages in one: the receiver has had its limit of messages in this hour',
  test: 'a message of `ebb notify test`',
} as const;

export type NotificationKind = keyof typeof NOTIFICATION_KINDS;

/** One notification. It never contains a secret. */
export interface Notification {
  /** The kind, a colon and more. It is always the same for the same event, so that the event is queued only once. */
  id: string;
  kind: NotificationKind;
  /** When the event happened or was found, milliseconds since the epoch. */
  atMs: number;
  /** A sentence for people. */
  text: string;
  /** Absent for messages about the whole fleet. */
  owner?: string;
  /** The owners of the computes that a message about the whole fleet, or an account, concerns: their receivers get it, too. */
  concernedOwners?: readonly string[];
  projectId?: string;
  projectName?: string;
  computeId?: string;
  policy?: string;
  /** A command that prevents the change or responds to it. */
  command?: string;
  /** For `change_coming`: the numbers of computes, when they are changed, and each change, as far as it is listed. */
  changes?: Span & { computes: number; raised: number; lowered: number; disconnecting: number } & {
    list: readonly ListedChange[];
    notListed: number;
  };
  /** Receivers named by a policy; they get the notification whatever their own filters are. */
  receivers?: readonly string[];
  /** Receivers that were told of the event before it happened: they are not told again. */
  toldBefore?: readonly string[];
}

export interface ListedChange extends Pick<Compute, 'projectId' | 'computeId'> {
  /** Milliseconds since the epoch. */
  atMs: number;
  policy: string;
  disconnects: boolean;
  /** The settings that change, before and after; empty for a restart that changes none. */
  from: Partial<ComputeSettings>;
  to: Partial<ComputeSettings>;
}

/** The JSON that webhooks receive; see schema/notification.schema.json. */
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
  link?: string | undefined;
  changes?: ReturnType<typeof changesJson> | undefined;
}

/** The maximum numbers of characters, so that no stored message exceeds 4 KB without its list of changes. */
const MAX_TEXT_LENGTH = 1000;
const MAX_NAME_LENGTH = 200;

/** The maximum number of characters of several messages in one, which is never stored. Slack cuts at 40,000. */
export const MAX_FOLDED_LENGTH = 30_000;

/** Converts a notification to the JSON that is sent. `statusUrl` is where people reach the status page. */
export function messageOf(notification: Notification, statusUrl?: string): MessageDocument {
  const { id, kind, atMs, text, owner, projectId, projectName, computeId, policy, command, changes } = notification;
  return {
    version: 1,
    id,
    kind,
    at: isoInstant(atMs),
    text: cut(text, kind === 'folded' ? MAX_FOLDED_LENGTH : MAX_TEXT_LENGTH),
    owner: owner === undefined ? null : cut(owner, MAX_NAME_LENGTH),
    project: projectId === undefined ? null : { id: projectId, name: cut(projectName ?? projectId, MAX_NAME_LENGTH) },
    compute: computeId ?? null,
    policy: policy ?? null,
    command: command ?? null,
    ...(statusUrl !== undefined && { link: `${statusUrl}${pageOf(notification)}` }),
    ...(changes && { changes: changesJson(changes) }),
  };
}

function changesJson({ fromMs, toMs, list, notListed, ...counts }: NonNullable<Notification['changes']>) {
  return {
    ...counts,
    from: isoInstant(fromMs),
    to: isoInstant(toMs),
    list: list.map(listedJson),
    not_listed: notListed,
  };
}

function listedJson({ projectId, computeId, atMs, policy, disconnects, from, to }: ListedChange) {
  const settings = { from: fieldsJson(from), to: fieldsJson(to) };
  return { project: projectId, compute: computeId, at: isoInstant(atMs), policy, disconnects, ...settings };
}

function pageOf({ computeId, owner }: Notification): string {
  if (computeId !== undefined) return `/computes/${encodeURIComponent(computeId)}`;
  return owner === undefined ? '/' : `/?owner=${encodeURIComponent(owner)}`;
}

function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

/** A receiver of notifications, as defined in the settings. Secrets are only named here, never stored. */
export interface Receiver {
  name: string;
  to: 'webhook' | 'slack';
  url: SecretPlace | { from: 'text'; text: string };
  /** The key that signs a webhook's messages. */
  secret?: SecretPlace;
  /** Origins other than this machine that may receive messages, such as `https://hooks.example`. */
  allowedOrigins: readonly string[];
  /** The settings file; relative paths in it start from its folder. */
  file: string;
  /** Accepts only notifications about computes of these owners; absent: all, including those about the whole fleet. */
  owners?: readonly string[];
  /** Accepts only notifications of these kinds; absent: all. */
  kinds?: readonly NotificationKind[];
  /** More messages than this in an hour are folded into one, except those that a person needs at once. Absent: 20. */
  perHour?: number;
}

/** The settings of notifications. */
export interface NotifyRules {
  receivers: readonly Receiver[];
  /** The default lead, in milliseconds, of notifications about changes that disconnect clients; absent: none are sent. */
  beforeMs?: number;
  /** Where people reach the status page, without a trailing slash; absent: messages have no link. */
  statusUrl?: string;
}

/** The receivers of a notification: the receivers that accept its owner and kind, and those that its policy names. */
export function receiversOf(
  receivers: readonly Receiver[],
  {
    kind,
    owner,
    concernedOwners = [],
    receivers: receiverNames = [],
    toldBefore = [],
  }: Pick<Notification, 'kind' | 'owner' | 'concernedOwners' | 'receivers' | 'toldBefore'>,
): Receiver[] {
  const concerned = owner === undefined ? concernedOwners : [owner];
  return receivers.filter(({ name, owners, kinds }) => {
    if (toldBefore.includes(name)) return false;
    if (receiverNames.includes(name)) return true;
    // Receivers of the whole fleet often belong to people who set holds themselves: they get messages about holds only if `kinds` names them.
    if (owners === undefined && kind === 'hold') return kinds?.includes(kind) ?? false;
    const acceptsOwner = owners === undefined || owners.some((one) => concerned.includes(one));
    return acceptsOwner && (kinds?.includes(kind) ?? true);
  });
}
