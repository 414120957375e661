import { createHmac } from 'node:crypto';
import { Agent } from 'undici';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { printable } from '../../common/safe-text.ts';
import {
  type MessageDocument,
  NOTIFICATION_KINDS,
  type NotificationKind,
  type Receiver,
} from '../../domain/notifications/notification.ts';
import type { SecretPlace } from '../../domain/policy/policy.ts';
import { timerMs } from '../../ports/clock.ts';
import type { Sender, SendOutcome } from '../../ports/outbox.ts';

const TIMEOUT_MS = 10_000;
const CONNECTIONS = 4;
/** Only the status of an answer is used. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** These statuses allow a retry, and so do all from 500 on. Any other from 300 to 499 refuses the message. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Sends messages with undici, without redirects or a proxy. Webhooks get the JSON, signed as https://www.standardwebhooks.com specifies
 * (`webhook-id`, `webhook-timestamp`, `webhook-signature`); Slack gets its text.
 */
export function createSender(options: {
  /** Reads a URL or a secret; rejects with a message that contains neither. */
  readSecret(place: SecretPlace, file: string): Promise<string>;
  /** A message if nothing may be sent to this URL. */
  refusedDestination(url: string, receiver: Receiver): string | undefined;
  /** Real time since the epoch: receivers compare it with their clock. */
  nowMs(): number;
  /** For the whole exchange, in real milliseconds. */
  timeoutMs?: number;
}): Sender {
  const { readSecret, refusedDestination, nowMs, timeoutMs = TIMEOUT_MS } = options;
  const dispatcher = new Agent({
    connections: CONNECTIONS,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxResponseSize: MAX_ANSWER_BYTES,
  });

  async function post(receiver: Receiver, { id, body }: { id: string; body: string }, signal: AbortSignal) {
    const url = receiver.url.from === 'text' ? receiver.url.text : await readSecret(receiver.url, receiver.file);
    const refused = refusedDestination(url, receiver);
    if (refused !== undefined) return refusal(refused);
    const { origin, pathname, search } = new URL(url);
    const secret = receiver.secret && (await readSecret(receiver.secret, receiver.file));
    const text = receiver.to === 'slack' ? JSON.stringify({ text: slackText(body) }) : body;
    const { statusCode, body: answer } = await dispatcher.request({
      origin,
      path: `${pathname}${search}`,
      method: 'POST',
      body: text,
      signal,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'ebb',
        ...(secret !== undefined && signatureOf(secret, { id, body: text, atMs: nowMs() })),
      },
    });
    await answer.dump();
    return outcomeOf(statusCode);
  }

  return {
    async send(receiver, message, stopped) {
      const signal = AbortSignal.any([stopped, AbortSignal.timeout(timerMs(timeoutMs))]);
      try {
        return await post(receiver, message, signal);
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
        if (signal.aborted || code?.includes('TIMEOUT')) return failure('no answer in time');
        // The message of a network error may show the host of a secret URL, so only its code is used. Errors without a code are ebb's own.
        return failure(code ?? (error instanceof Error ? error.message : 'failed'));
      }
    },
    close: () => dispatcher.destroy(),
  };
}

function outcomeOf(status: number): SendOutcome {
  if (status >= 200 && status < 300) return { ok: true };
  const message = `answered ${status}`;
  return status >= 300 && status < 500 && !TEMPORARY.has(status) ? refusal(message) : failure(message);
}

function refusal(message: string): SendOutcome {
  return { ok: false, isRefused: true, message };
}

function failure(message: string): SendOutcome {
  return { ok: false, isRefused: false, message };
}

/** The headers of a signed message. A secret that begins with `whsec_` is base64; the bytes of any other are the key. */
export function signatureOf(
  secret: string,
  { id, body, atMs }: { id: string; body: string; atMs: number },
): Record<string, string> {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret);
  const timestamp = String(Math.floor(atMs / 1000));
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` };
}

/** The maximum number of characters of a list of computes in a text for Slack. */
const MAX_LIST_LENGTH = 3000;

/** Characters that begin markup or a link in Slack: https://docs.slack.dev/messaging/formatting-message-text */
const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** The message's sentence with place and owner, restarting computes that the sentence leaves out, the command to copy, and the link. */
function slackText(body: string): string {
  const json = parseJson(body);
  // `changes` is parsed apart: a message that an earlier version has stored has no list of changes.
  const parsed = Message.omit({ changes: true }).safeParse(json);
  if (!parsed.success) return escaped(body);
  const { text, command, owner, compute, project, link } = parsed.data;
  const place = [project?.name ?? project?.id, compute]
    .filter((part) => part !== undefined && part !== null)
    .join(' / ');
  const about = [place, owner === null ? '' : `owner ${owner}`].filter((part) => part !== '').join(', ');
  return [
    escaped(about === '' ? text : `${text} (${about})`),
    ...restartsLeftOut(text, Message.pick({ changes: true }).safeParse(json).data?.changes),
    ...(command === null ? [] : [`\`${escaped(command)}\``]),
    ...(link === undefined ? [] : [escaped(link)]),
  ].join('\n');
}

/** A line with the computes that restart, if the sentence does not name all of them. */
function restartsLeftOut(text: string, changes: z.infer<typeof Changes> | undefined): string[] {
  const { list = [], disconnecting = 0 } = changes ?? {};
  const ids = [...new Set(list.filter(({ disconnects }) => disconnects).map(({ compute }) => compute))];
  const words = new Set(text.split(/[\s,()]+/));
  if (ids.every((id) => words.has(id))) return [];
  const shown: string[] = [];
  let length = 0;
  for (const id of ids) {
    length += id.length + 2;
    if (length > MAX_LIST_LENGTH) break;
    shown.push(id);
  }
  const more = Math.max(disconnecting, ids.length) - shown.length;
  return [
    escaped(`${more > 0 ? 'restart' : 'all that restart'}: ${shown.join(', ')}${more > 0 ? `, and ${more} more` : ''}`),
  ];
}

/** Line breaks stay: a summary has several lines. */
function escaped(text: string): string {
  const shown = text.split('\n').map(printable).join('\n');
  return shown.replaceAll(/[&<>]/g, (character) => ESCAPES[character] ?? character);
}

const KINDS = Object.keys(NOTIFICATION_KINDS) as [NotificationKind, ...NotificationKind[]];

const Settings = z.object({
  min_cu: z.number().exactOptional(),
  max_cu: z.number().exactOptional(),
  suspend_timeout_seconds: z.number().int().exactOptional(),
});

const ListedChange = z.object({
  project: z.string().describe('Id of the project.'),
  compute: z.string().describe('Id of the compute.'),
  at: z.string().meta({ format: 'date-time' }),
  policy: z.string(),
  disconnects: z.boolean().describe('Whether it disconnects clients, if the compute stays asleep or awake.'),
  from: Settings.describe('The present values of the settings that change. Empty: the compute is only restarted.'),
  to: Settings,
});

const Changes = z
  .object({
    computes: z.number().int(),
    raised: z.number().int(),
    lowered: z.number().int(),
    disconnecting: z.number().int().describe('How many disconnect clients, if each compute stays asleep or awake.'),
    from: z.string().meta({ format: 'date-time' }),
    to: z.string().meta({ format: 'date-time' }),
    list: z.array(ListedChange).describe('Each change, at most 500: those that disconnect clients come first.'),
    not_listed: z.number().int().describe('How many changes the list leaves out.'),
  })
  .describe('Only of change_coming: what is changed, and when it begins.');

/** The body sent to a webhook. */
export const Message = z
  .object({
    version: z.literal(1),
    id: z.string().describe('The same each time that the same message is sent; also the header webhook-id.'),
    kind: z.enum(KINDS),
    at: z.string().meta({ format: 'date-time' }).describe('When it happened or was found, in UTC.'),
    text: z.string().describe('A sentence for people.'),
    owner: z.string().nullable().describe('Null: it concerns the whole fleet.'),
    project: z.object({ id: z.string(), name: z.string() }).nullable(),
    compute: z.string().nullable().describe('Id of the compute.'),
    policy: z.string().nullable(),
    command: z.string().nullable().describe('A command that prevents or answers it.'),
    link: z.string().optional().describe('The page of the compute or its owner; only if status_url is set.'),
    changes: Changes.optional(),
  })
  .meta({ title: 'ebb notification' }) satisfies z.ZodType<MessageDocument>;
