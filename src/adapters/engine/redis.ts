import { Redis, type RedisOptions } from 'ioredis';
import { explainConnectError } from './connect-errors.ts';
import { createGuard } from './guard.ts';
import { type OpenedEngine, refused, START_IT } from './opened-engine.ts';
import { createStateChanges } from './state-changes.ts';

const CONNECT_TIMEOUT_MS = 3000;
/** A Redis that answers nothing for this long counts as gone: a command fails, and its caller asks again later. */
const COMMAND_TIMEOUT_MS = 5000;
/** Longer than the 10 s that a worker's connection may wait for a job. */
const WORKER_SILENCE_MS = 20_000;
/** BullMQ needs commands that older ones don't have. */
const OLDEST_VERSION = 6.2;

/** Opens a Redis; one that is away is an error after at most 3 s. */
export async function openRedis({ url, prefix }: { url: string; prefix: string }): Promise<OpenedEngine> {
  if (!URL.canParse(url)) return refused('EBB_QUEUE_URL is not a URL');
  const address = addressOf(url);
  const connections = createConnections(url);
  let started = false;
  const commands = connections.open({
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: COMMAND_TIMEOUT_MS,
    // Before the first connection nobody knows whether the address is right: no second try.
    retryStrategy: (times) => (started ? retryDelayMs(times) : null),
  });
  const problem = await connectFirst(commands);
  if (problem !== undefined) {
    connections.closeAll();
    return refused(`cannot use Redis at ${address}: ${problem}`);
  }
  started = true;
  const { report, onStateChange, end } = createStateChanges();
  let lastError: Error | undefined;
  commands.on('error', (error) => {
    lastError = error;
  });
  commands.on('close', () => {
    const reason = lastError === undefined ? 'the connection was closed' : explainConnectError(lastError);
    report({ up: false, message: `Redis at ${address} is gone: ${reason}` });
  });
  commands.on('ready', () => {
    lastError = undefined;
    report({ up: true, message: `Redis at ${address} is back` });
  });
  return {
    ok: true,
    engine: {
      kind: 'redis',
      name: 'Redis',
      prefix,
      commands,
      openWorkerConnection: () => connections.open({ maxRetriesPerRequest: null, socketTimeout: WORKER_SILENCE_MS }),
      onStateChange,
      ...createGuard({ message: 'Redis is not reachable', isAway: isRedisAway }),
      close: async () => {
        end();
        connections.closeAll();
      },
    },
  };
}

/** Resolves to what is wrong, or to undefined once a Redis answers that is new enough. */
async function connectFirst(commands: Redis): Promise<string | undefined> {
  let cause: unknown;
  // connect() itself only says "Connection is closed"; the cause comes as an event.
  const hear = (error: Error) => {
    cause = error;
  };
  commands.on('error', hear);
  // The driver's own limit ends with the handshake of TCP; a frozen Redis still does that.
  const timer = setTimeout(() => {
    cause = new Error('timeout');
    commands.disconnect();
  }, CONNECT_TIMEOUT_MS);
  try {
    await commands.connect();
    const version = /redis_version:(\d+\.\d+)\S*/.exec(await commands.info('server'));
    if (version === null || Number(version[1]) >= OLDEST_VERSION) return undefined;
    return `it is version ${version[1]}, and ebb needs ${OLDEST_VERSION} or newer`;
  } catch (error) {
    cause ??= error;
    return `${explainConnectError(cause instanceof Error ? cause : new Error(String(cause)))}; ${START_IT}`;
  } finally {
    clearTimeout(timer);
    commands.removeListener('error', hear);
  }
}

const AWAY =
  /Connection is closed|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|isn't writeable|max retries per request|timed out|Socket timeout|LOADING/i;

function isRedisAway(error: Error): boolean {
  return AWAY.test(`${(error as NodeJS.ErrnoException).code ?? ''} ${error.message}`);
}

/** Opens connections and closes them all, with the duplicates that BullMQ makes of them for its workers. */
function createConnections(url: string) {
  const opened: Redis[] = [];

  function track(connection: Redis): Redis {
    opened.push(connection);
    // ioredis prints errors that nobody listens for; the state of the engine is told once, by `commands` alone.
    connection.on('error', () => {});
    const duplicate = connection.duplicate.bind(connection);
    connection.duplicate = (options) => track(duplicate(options)) as ReturnType<typeof duplicate>;
    return connection;
  }

  return {
    open: (options: RedisOptions) =>
      track(
        new Redis(url, {
          connectTimeout: CONNECT_TIMEOUT_MS,
          retryStrategy: retryDelayMs,
          // After a failover the old master refuses writes: look for the new one, and send the command again.
          reconnectOnError: ({ message }) => (message.startsWith('READONLY') ? 2 : false),
          ...options,
          replyMapping: 'legacy',
        }),
      ),
    closeAll: () => {
      for (const connection of opened) connection.disconnect();
    },
  };
}

function retryDelayMs(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 6), 2000);
}

/** Host and port alone: what may be said aloud of a URL. */
function addressOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname || '127.0.0.1'}:${port || '6379'}`;
}
