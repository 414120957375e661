import { type EventEmitter, once } from 'node:events';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisConnection } from '../../ports/engine.ts';
import { explainConnectError } from './opened-engine.ts';
import type { RedisPlace } from './redis-place.ts';

export const CONNECT_TIMEOUT_MS = 3000;
/** A Redis that doesn't answer for this long counts as gone: the command fails. */
const COMMAND_TIMEOUT_MS = 5000;
/** Longer than the 10 s that a worker's connection may wait for a job. */
const WORKER_SILENCE_MS = 20_000;
/** The shortest time between two reconnections because of READONLY errors, since a replica may stay one. */
const READONLY_QUIET_MS = 2000;
/** Interval at which the nodes of a Cluster are asked for its slots. */
const CLUSTER_REFRESH_MS = 2000;

/** Opens connections and closes them all, with the duplicates that BullMQ makes for its workers. */
export function createRedisConnections(place: RedisPlace) {
  const opened: RedisConnection[] = [];
  let keepsReconnecting = false;

  function track<Connection extends RedisConnection>(connection: Connection): Connection {
    opened.push(connection);
    // Without a listener ioredis prints errors. Only the state of `commands` is logged.
    connection.on('error', () => {});
    if (connection instanceof Cluster) endOnce(connection);
    trackDuplicates(connection, track);
    keepBullQuiet(connection);
    return connection;
  }

  return {
    /** Commands fail at once while Redis is unavailable. Before `keepReconnecting` it connects only once: the address may be wrong. */
    openCommands: (): RedisConnection =>
      track(
        connect(place, {
          lazyConnect: true,
          commandsWait: false,
          retryDelay: (times) => (keepsReconnecting ? retryDelayMs(times) : null),
          redisOptions: {
            maxRetriesPerRequest: 1,
            commandTimeout: COMMAND_TIMEOUT_MS,
            socketTimeout: COMMAND_TIMEOUT_MS,
          },
        }),
      ),
    keepReconnecting: (): void => {
      keepsReconnecting = true;
    },
    /** Waits while Redis is unavailable. */
    openWorker: (): RedisConnection =>
      track(
        connect(place, {
          lazyConnect: false,
          commandsWait: true,
          retryDelay: retryDelayMs,
          redisOptions: { maxRetriesPerRequest: null, socketTimeout: WORKER_SILENCE_MS },
        }),
      ),
    closeAll: (): void => {
      for (const connection of opened) connection.disconnect();
    },
  };
}

interface ConnectOptions {
  lazyConnect: boolean;
  /** True if commands wait while Redis is unavailable; otherwise they fail. */
  commandsWait: boolean;
  retryDelay(times: number): number | null;
  redisOptions: RedisOptions;
}

function connect(
  place: RedisPlace,
  { lazyConnect, commandsWait, retryDelay, redisOptions }: ConnectOptions,
): RedisConnection {
  const common: RedisOptions = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectOnError: createReconnectOnError(),
    ...redisOptions,
  };
  if (place.kind === 'cluster') {
    const { nodes, tls, username, password } = place;
    const nodeOptions = { ...common, ...defined({ username, password, tls: tls ? {} : undefined }) };
    return new Cluster([...nodes], {
      lazyConnect,
      enableOfflineQueue: commandsWait,
      clusterRetryStrategy: retryDelay,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      slotsRefreshInterval: CLUSTER_REFRESH_MS,
      redisOptions: { ...nodeOptions, replyMapping: 'legacy' },
      // By default names are resolved first, but certificates are made out to names.
      ...(tls && { dnsLookup: (host, done) => done(null, host) }),
    });
  }
  const single: RedisOptions = { ...common, lazyConnect, enableOfflineQueue: commandsWait, retryStrategy: retryDelay };
  if (place.kind === 'single') return new Redis(place.url, { ...single, replyMapping: 'legacy' });
  const { sentinels, name, db, tls, username, password, sentinelUsername, sentinelPassword } = place;
  return new Redis({
    ...single,
    ...defined({ username, password, sentinelUsername, sentinelPassword }),
    ...(tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    sentinels: [...sentinels],
    name,
    db,
    sentinelRetryStrategy: retryDelay,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    replyMapping: 'legacy',
  });
}

/** Leaves out undefined fields, which ioredis takes for values. */
function defined<Options extends object>(options: Options): { [Key in keyof Options]?: NonNullable<Options[Key]> } {
  const fields = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as { [Key in keyof Options]?: NonNullable<Options[Key]> };
}

/** After a failover the old primary refuses writes. The answer 2 makes ioredis connect to the new one, and send the command again. */
function createReconnectOnError(): (error: Error) => 2 | false {
  let lastMs = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    if (!message.includes('READONLY') || performance.now() - lastMs < READONLY_QUIET_MS) return false;
    lastMs = performance.now();
    return 2;
  };
}

/**
 * Makes a disconnected Cluster end exactly once. ioredis ends a Cluster when the first of its nodes has closed, and again for each later node
 * (https://github.com/redis/ioredis/pull/1864). If BullMQ connects the Cluster again meanwhile, these ends close it, or make the connecting fail:
 * a paused worker would wait for its connection for ever.
 */
function endOnce(cluster: Cluster): void {
  const pool: EventEmitter = Reflect.get(cluster, 'connectionPool');
  const emit = pool.emit.bind(pool);
  let hasNodes = false;
  pool.emit = (event, ...args) => {
    if (event === 'drain' && !hasNodes) return false;
    if (event === '+node' || event === 'drain') hasNodes = event === '+node';
    return emit(event, ...args);
  };
  const connect = cluster.connect.bind(cluster);
  cluster.connect = async () => {
    if (hasNodes && cluster.status === 'disconnecting') await once(cluster, 'end');
    return connect();
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

/** BullMQ prints a warning about the eviction policy for each connection; the engine logs one instead. */
function keepBullQuiet(connection: RedisConnection): void {
  const info = connection.info.bind(connection);
  const withoutPolicy = async () => (await info()).replace(/^maxmemory_policy:.*$/m, '');
  // The driver itself passes a callback.
  const quiet = (...args: Parameters<typeof info>) => (args.length === 0 ? withoutPolicy() : info(...args));
  connection.info = quiet as typeof connection.info;
}

function retryDelayMs(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 6), 2000);
}

/** Why Redis refuses commands, in words for an operator. */
const REFUSALS: readonly [pattern: RegExp, text: string][] = [
  [/\bOOM command not allowed/, 'it is out of memory: raise its maxmemory'],
  [/\bREADONLY\b/, 'it is a read-only replica: name the primary'],
  [/\bMISCONF\b/, 'it cannot save to its disk'],
  [/\bNOREPLICAS\b/, 'it has too few replicas'],
  [/\bCLUSTERDOWN\b/, 'the cluster is down'],
  [/\bMASTERDOWN\b/, 'it is a replica that lost its primary'],
  [/\bLOADING\b/, 'it is loading its data'],
  [/\bBUSY Redis is busy/, 'it is busy with a script'],
  [/\bNOPERM\b/, 'its user may not do what ebb needs'],
];

const AWAY =
  /Connection is closed|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|isn't writeable|isn't ready|max retries per request|timed out|Socket timeout|Failed to refresh slots|startup nodes|Too many Cluster redirections|Cluster is (?:ended|disconnect)|TRYAGAIN|UNBLOCKED|sentinels are unreachable/i;

/** Why Redis refuses; undefined for other errors. */
function refusal(error: Error): string | undefined {
  const text = textOf(error);
  return REFUSALS.find(([pattern]) => pattern.test(text))?.[1];
}

/** True for errors that only mean that Redis is unavailable, or can't work. */
export function isRedisUnavailable(error: Error): boolean {
  return AWAY.test(textOf(error)) || refusal(error) !== undefined;
}

/** The message for callers while Redis is unavailable. */
export function awayMessage(error: Error): string {
  const refused = refusal(error);
  return refused === undefined ? 'Redis is not reachable' : `Redis does not work: ${refused}`;
}

/** Explains an outage, without passwords or commands. */
export function explainRedisError(error: Error): string {
  const cause = causeOf(error);
  // The driver reports nothing else when no node of a Cluster answers.
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
