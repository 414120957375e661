import { isoInstant } from '../time/instants.ts';
import type { Notification, NotificationKind } from './notification.ts';

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
