import { z } from 'zod';
import { isLoopbackHost } from '../common/loopback.ts';
import type { NotifyRules, Receiver } from '../domain/notifications/notification.ts';
import { NOTIFICATION_KINDS, type NotificationKind } from '../domain/notifications/notification.ts';
import { duration } from '../policy/schema/scalars.ts';
import { placeOf } from '../policy/sources.ts';
import { keyPath, oneOf, text } from './schema-parts.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
const FORM = 'must be a mapping such as {to: webhook, url: "https://hooks.example/ebb", secret_env: EBB_NOTIFY_SECRET}';

const KINDS = Object.keys(NOTIFICATION_KINDS) as [NotificationKind, ...NotificationKind[]];

/** A file that others may change must not get at any other variable of the process. */
function variable(prefix: string) {
  return text().regex(new RegExp(`^${prefix}(_[A-Z0-9_]+)?$`), {
    error: `must be the name of a variable: ${prefix}, or ${prefix}_ and more capitals`,
  });
}

/** The places of a receiver and of its secret. */
export const placeShape = {
  url: text()
    .regex(/^https?:\/\/[^/?#@\s]+(?:[/?][^@\s]*)?$/i, {
      error: 'must be a URL such as https://hooks.example/ebb, without user and password',
    })
    .optional(),
  url_env: variable('EBB_NOTIFY_URL').optional(),
  url_file: keyPath().optional(),
  secret_env: variable('EBB_NOTIFY_SECRET').optional(),
  secret_file: keyPath().optional(),
};

const PER_HOUR = 'must be a whole number from 1 to 1000';

const shape = {
  to: oneOf(['webhook', 'slack']),
  ...placeShape,
  owners: z.array(text(), { error: 'must be a list of owners' }).min(1, { error: 'names no owner' }).optional(),
  kinds: z
    .array(oneOf(KINDS), { error: 'must be a list of kinds of notifications' })
    .min(1, { error: 'must name a kind; leave it out to take all' })
    .optional(),
  per_hour: z.int({ error: PER_HOUR }).min(1, { error: PER_HOUR }).max(1000, { error: PER_HOUR }).optional(),
};

interface Place {
  url?: string | undefined;
  url_env?: string | undefined;
  url_file?: string | undefined;
  secret_env?: string | undefined;
  secret_file?: string | undefined;
}

export const IS_NOT_PLACED = { error: 'must say in one way where it is: url, url_env or url_file' };

export function isPlaced({ url, url_env, url_file }: Place): boolean {
  return count(url, url_env, url_file) === 1;
}

export function secretsIn({ secret_env, secret_file }: Place): number {
  return count(secret_env, secret_file);
}

function count(...values: readonly unknown[]): number {
  return values.filter((value) => value !== undefined).length;
}

/** A place as the settings say it, one of {@link isPlaced}. */
export function placeIn({ url = '', ...given }: Place): Pick<Receiver, 'url' | 'secret'> {
  const secret = placeOf(given.secret_env, given.secret_file);
  return { url: placeOf(given.url_env, given.url_file) ?? { from: 'text', text: url }, ...(secret && { secret }) };
}

/** The keys of an entry of `notify`. */
export const RECEIVER_KEYS: readonly string[] = Object.keys(shape);

const receiver = z
  .strictObject(shape, { error: FORM })
  .refine(isPlaced, IS_NOT_PLACED)
  .refine(({ to, url }) => to !== 'slack' || url === undefined, {
    error: 'is a secret for Slack: put it in a variable (url_env) or a file (url_file)',
    path: ['url'],
  })
  .refine((given) => secretsIn(given) === (given.to === 'webhook' ? 1 : 0), {
    error: 'must have secret_env or secret_file, if it is a webhook: its messages are signed',
  });

/** `notify` of `ebb.yaml`. */
export const notifySchema = z
  .record(z.string(), receiver, { error: 'must map names of receivers to where they are' })
  .superRefine((receivers, context) => {
    for (const name of Object.keys(receivers).filter((one) => !NAME.test(one))) {
      const message = 'must be 1 to 40 letters, digits, "-", "_" or ".", the first a letter or digit';
      context.addIssue({ code: 'custom', path: [name], message });
    }
  });

/** `notify_before` of `ebb.yaml`. */
export const notifyBeforeSchema = duration({ minMs: 60_000, maxMs: 86_400_000, text: '1m to 1d' });

/** Incoming webhooks of Slack need no entry in `notify_allowed_origins`. */
const SLACK = 'https://hooks.slack.com';

/** Why nothing may be sent to this URL; undefined if it may. It names the origin only: the rest of a URL may be a secret. */
export function destinationRefused(
  url: string,
  { to, allowedOrigins }: Pick<Receiver, 'to' | 'allowedOrigins'>,
): string | undefined {
  const { origin, hostname } = URL.canParse(url) ? new URL(url) : { origin: 'null', hostname: '' };
  if (!/^https?:/.test(origin)) return 'its URL is not an http or https URL';
  if (isLoopbackHost(hostname) || allowedOrigins.includes(origin) || (to === 'slack' && origin === SLACK))
    return undefined;
  return `${origin} is not allowed: add it to notify_allowed_origins`;
}

/** The settings of notifications; `file` is the settings file. */
export function notifyRulesOf(
  receivers: z.output<typeof notifySchema>,
  {
    allowedOrigins,
    beforeMs,
    statusUrl,
    file,
  }: {
    allowedOrigins: readonly string[];
    beforeMs: number | undefined;
    statusUrl: string | undefined;
    file: string;
  },
): NotifyRules {
  return {
    receivers: Object.entries(receivers).map(([name, { to, owners, kinds, per_hour: perHour, ...place }]) => ({
      name,
      to,
      allowedOrigins,
      file,
      ...placeIn(place),
      ...(owners && { owners }),
      ...(kinds && { kinds }),
      ...(perHour !== undefined && { perHour }),
    })),
    ...(beforeMs !== undefined && { beforeMs }),
    ...(statusUrl !== undefined && { statusUrl }),
  };
}
