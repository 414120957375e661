import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisConnection } from '../../ports/engine.ts';
import { explainConnectError } from './opened-engine.ts';
import type { RedisPlace } from './redis-place.ts';

export const CONNECT_TIMEOUT_MS = 3000;
/** A Redis that answers nothing for this long counts as gone: a command fails, and its caller asks again later. */
const COMMAND_TIMEOUT_MS = 5000;
/** Longer than the 10 s that a worker's connection may wait for a job. */
const WORKER_SILENCE_MS = 20_000;
/** A replica that stays one is not asked again and again for the same command. */
const READONLY_QUIET_MS = 2000;
const CLUSTER_REFRESH_MS = 2000;

/** Opens connections and closes them all, with the duplicates that BullMQ makes for its workers. */
export interface RedisConnections {
  /** Fails at once while Redis is away; doesn't try twice before `started` was called, for the address may be wrong. */
  openCommands(): RedisConnection;
  started(): void;
  /** Waits for Redis. */
  openWorker(): RedisConnection;
  closeAll(): void;
}

export function createRedisConnections(place: RedisPlace): RedisConnections {
  const opened: RedisConnection[] = [];
  let started = false;

  function track<Connection extends RedisConnection>(connection: Connection): Connection {
    opened.push(connection);
    // ioredis prints errors without a listener; the state of the engine is logged once, by `commands` alone.
    connection.on('error', () => {});
    trackDuplicates(connection, track);
    keepBullQuiet(connection);
    return connection;
  }

  return {
    openCommands: () =>
      track(
        connect(place, {
          lazyConnect: true,
          waits: false,
          retryDelay: (times) => (started ? retryDelayMs(times) : null),
          redisOptions: {
            maxRetriesPerRequest: 1,
            commandTimeout: COMMAND_TIMEOUT_MS,
            socketTimeout: COMMAND_TIMEOUT_MS,
          },
        }),
      ),
    started: () => {
      started = true;
    },
    openWorker: () =>
      track(
        connect(place, {
          lazyConnect: false,
          waits: true,
          retryDelay: retryDelayMs,
          redisOptions: { maxRetriesPerRequest: null, socketTimeout: WORKER_SILENCE_MS },
        }),
      ),
    closeAll: () => {
      for (const connection of opened) connection.disconnect();
    },
  };
}

interface ConnectOptions {
  lazyConnect: boolean;
  /** Commands wait for the connection while it is away. */
  waits: boolean;
  retryDelay(times: number): number | null;
  redisOptions: RedisOptions;
}

function connect(place: RedisPlace, { lazyConnect, waits, retryDelay, redisOptions }: ConnectOptions): RedisConnection {
  const common: RedisOptions = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectOnError: createReconnectOnError(),
    ...redisOptions,
  };
  if (place.kind === 'cluster') {
    const { nodes, tls, username, password } = place;
    return new Cluster([...nodes], {
      lazyConnect,
      enableOfflineQueue: waits,
      clusterRetryStrategy: retryDelay,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      slotsRefreshInterval: CLUSTER_REFRESH_MS,
      redisOptions: { ...common, ...given({ username, password, tls: tls ? {} : undefined }), replyMapping: 'legacy' },
      // A certificate is made out to a name, and by default names are looked up first.
      ...(tls && { dnsLookup: (host, done) => done(null, host) }),
    });
  }
  const single: RedisOptions = { ...common, lazyConnect, enableOfflineQueue: waits, retryStrategy: retryDelay };
  if (place.kind === 'single') return new Redis(place.url, { ...single, replyMapping: 'legacy' });
  const { sentinels, name, db, tls, username, password, sentinelUsername, sentinelPassword } = place;
  return new Redis({
    ...single,
    ...given({ username, password, sentinelUsername, sentinelPassword }),
    ...(tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    sentinels: [...sentinels],
    name,
    db,
    sentinelRetryStrategy: retryDelay,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    replyMapping: 'legacy',
  });
}

/** The same without the fields that are undefined: to ioredis those are values. */
function given<Options extends object>(options: Options): { [Key in keyof Options]?: NonNullable<Options[Key]> } {
  const fields = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as { [Key in keyof Options]?: NonNullable<Options[Key]> };
}

/** After a failover the old master refuses writes: look for the new one, and send the command again. */
function createReconnectOnError(): (error: Error) => 2 | false {
  let lastMs = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    if (!message.includes('READONLY') || performance.now() - lastMs < READONLY_QUIET_MS) return false;
    lastMs = performance.now();
    return 2;
  };
}

function trackDuplicates(connection: RedisConnection, track: <C extends RedisConnection>(duplicate: C) => C): void {
  if (connection instanceof Cluster) {
    const duplicate = connection.duplicate.bind(connection);
    connection.duplicate = ((nodes, options) => track(duplicate(nodes, options))) as typeof duplicate;
    return;
  }
  const duplicate = connection.duplicate.bind(connection);
  connection.duplicate = ((options) => track(duplicate(options))) as typeof duplicate;
}

/** BullMQ reads the eviction policy of every connection and prints a warning for each; the engine warns once, in the log. */
function keepBullQuiet(connection: RedisConnection): void {
  const info = connection.info.bind(connection);
  const withoutPolicy = async () => (await info()).replace(/^maxmemory_policy:.*$/m, '');
  // The driver itself asks with a callback.
  const quiet = (...args: Parameters<typeof info>) => (args.length === 0 ? withoutPolicy() : info(...args));
  connection.info = quiet as typeof connection.info;
}

function retryDelayMs(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 6), 2000);
}

/** Reasons for which Redis refuses work, and which an operator can remove. */
const REFUSALS: readonly [pattern: RegExp, text: string][] = [
  [/\bOOM command not allowed/, 'it is out of memory: raise its maxmemory'],
  [/\bREADONLY\b/, 'it is a read-only replica: name the primary'],
  [/\bMISCONF\b/, 'it can not save to its disk'],
  [/\bNOREPLICAS\b/, 'it has too few replicas'],
  [/\bCLUSTERDOWN\b/, 'the cluster is down'],
  [/\bMASTERDOWN\b/, 'it is a replica that lost its primary'],
  [/\bLOADING\b/, 'it is loading its data'],
  [/\bBUSY Redis is busy/, 'it is busy with a script'],
  [/\bNOPERM\b/, 'its user may not do what ebb needs'],
];

const AWAY =
  /Connection is closed|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|isn't writeable|isn't ready|max retries per request|timed out|Socket timeout|Failed to refresh slots|startup nodes|Too many Cluster redirections|Cluster is (?:ended|disconnect)|TRYAGAIN|UNBLOCKED|sentinels are unreachable/i;

/** The reason that Redis gives for a refusal; undefined for other errors. */
function refusal(error: Error): string | undefined {
  const text = textOf(error);
  return REFUSALS.find(([pattern]) => pattern.test(text))?.[1];
}

/** True for errors that only mean that Redis is away, or not able to work. */
export function isRedisAway(error: Error): boolean {
  return AWAY.test(textOf(error)) || refusal(error) !== undefined;
}

/** The message for callers while Redis is unavailable. */
export function awayMessage(error: Error): string {
  const refused = refusal(error);
  return refused === undefined ? 'Redis is not reachable' : `Redis does not work: ${refused}`;
}

/** Why it is away, in words without passwords and commands. */
export function explainRedisError(error: Error): string {
  const cause = causeOf(error);
  // All that is known of nodes that don't answer.
  if (cause !== error && cause.message === 'Connection is closed.') return 'no node answers';
  return refusal(error) ?? explainConnectError(cause);
}

/** The error of a node; a Cluster only reports that all of them failed. */
function causeOf(error: Error): Error {
  const { lastNodeError } = error as Error & { lastNodeError?: Error | null };
  return lastNodeError ?? error;
}

function textOf(error: Error): string {
  return `${(error as NodeJS.ErrnoException).code ?? ''} ${error.message} ${causeOf(error).message}`;
}
