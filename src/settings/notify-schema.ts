import { z } from 'zod';
import { isLoopbackHost } from '../common/loopback.ts';
import {
  NOTIFICATION_KINDS,
  type NotificationKind,
  type NotifyRules,
  type Receiver,
} from '../domain/notifications/notification.ts';
import { DAY_MS, MINUTE_MS } from '../domain/time/units.ts';
import { duration } from '../policy/schema/scalars.ts';
import { secretPlace } from '../policy/sources.ts';
import { byName, keyPath, oneOf, text, variableName } from './schema-parts.ts';

const FORM = 'must be a mapping such as {to: webhook, url: "https://hooks.example/ebb", secret_env: EBB_NOTIFY_SECRET}';

const KINDS = Object.keys(NOTIFICATION_KINDS) as [NotificationKind, ...NotificationKind[]];

/** The URL of a receiver, and the secret that signs its messages. */
export const destinationShape = {
  url: text()
    .regex(/^https?:\/\/[^/?#@\s]+(?:[/?][^@\s]*)?$/i, {
      error: 'must be a URL such as https://hooks.example/ebb, without user and password',
    })
    .optional(),
  url_env: variableName('EBB_NOTIFY_URL').optional(),
  url_file: keyPath().optional(),
  secret_env: variableName('EBB_NOTIFY_SECRET').optional(),
  secret_file: keyPath().optional(),
};

const PER_HOUR_FORM = 'must be a whole number from 1 to 1000';

const shape = {
  to: oneOf(['webhook', 'slack']),
  ...destinationShape,
  owners: z.array(text(), { error: 'must be a list of owners' }).min(1, { error: 'names no owner' }).optional(),
  kinds: z
    .array(oneOf(KINDS), { error: 'must be a list of kinds of notifications' })
    .min(1, { error: 'must name a kind; leave it out to take all' })
    .optional(),
  per_hour: z
    .int({ error: PER_HOUR_FORM })
    .min(1, { error: PER_HOUR_FORM })
    .max(1000, { error: PER_HOUR_FORM })
    .optional(),
};

type Destination = Partial<Record<keyof typeof destinationShape, string | undefined>>;

export const NEEDS_ONE_URL = { error: 'must say in one way where it is: url, url_env or url_file' };

export function hasOneUrl({ url, url_env, url_file }: Destination): boolean {
  return count(url, url_env, url_file) === 1;
}

export function countSecrets({ secret_env, secret_file }: Destination): number {
  return count(secret_env, secret_file);
}

function count(...values: readonly unknown[]): number {
  return values.filter((value) => value !== undefined).length;
}

/** Converts a destination with exactly one URL (see {@link hasOneUrl}) for the domain. */
export function destinationOf({ url = '', ...places }: Destination): Pick<Receiver, 'url' | 'secret'> {
  const secret = secretPlace(places.secret_env, places.secret_file);
  return {
    url: secretPlace(places.url_env, places.url_file) ?? { from: 'text', text: url },
    ...(secret && { secret }),
  };
}

export const RECEIVER_KEYS: readonly string[] = Object.keys(shape);

const receiver = z
  .strictObject(shape, { error: FORM })
  .refine(hasOneUrl, NEEDS_ONE_URL)
  .refine(({ to, url }) => to !== 'slack' || url === undefined, {
    error: 'is a secret for Slack: put it in a variable (url_env) or a file (url_file)',
    path: ['url'],
  })
  .refine((entry) => countSecrets(entry) === (entry.to === 'webhook' ? 1 : 0), {
    error: 'must have secret_env or secret_file, if it is a webhook: its messages are signed',
  });

export const notifySchema = byName(receiver, 'must map names of receivers to where they are');

export const notifyBeforeSchema = duration({ minMs: MINUTE_MS, maxMs: DAY_MS, text: '1m to 1d' });

/** Incoming webhooks of Slack need no entry in `notify_allowed_origins`. */
const SLACK = 'https://hooks.slack.com';

/** Returns why nothing may be sent to a URL, or undefined if it is allowed. Names only the origin, since the rest of a URL may be secret. */
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
  options: {
    allowedOrigins: readonly string[];
    beforeMs: number | undefined;
    statusUrl: string | undefined;
    file: string;
  },
): NotifyRules {
  const { allowedOrigins, beforeMs, statusUrl, file } = options;
  return {
    receivers: Object.entries(receivers).map(([name, { to, owners, kinds, per_hour: perHour, ...destination }]) => ({
      name,
      to,
      allowedOrigins,
      file,
      ...destinationOf(destination),
      ...(owners && { owners }),
      ...(kinds && { kinds }),
      ...(perHour !== undefined && { perHour }),
    })),
    ...(beforeMs !== undefined && { beforeMs }),
    ...(statusUrl !== undefined && { statusUrl }),
  };
}
