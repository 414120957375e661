import { Redis, type RedisOptions } from 'ioredis';
import type { Engine } from '../../ports/engine.ts';
import { explainConnectError } from './connect-errors.ts';
import { createStateChanges } from './state-changes.ts';

const CONNECT_TIMEOUT_MS = 3000;
/** A Redis that answers nothing for this long counts as away: a command fails, and its caller asks again later. */
const COMMAND_TIMEOUT_MS = 5000;

type Opened = { ok: true; engine: Engine } | { ok: false; error: { message: string } };

/** Opens a Redis; one that is away is an error after at most 3 s. */
export async function openRedis({ url, prefix }: { url: string; prefix: string }): Promise<Opened> {
  if (!URL.canParse(url)) return { ok: false, error: { message: 'EBB_QUEUE_URL is not a URL' } };
  const opened: Redis[] = [];
  const changes = createStateChanges();
  const address = addressOf(url);
  let started = false;

  function open(options: RedisOptions): Redis {
    const connection = new Redis(url, {
      connectTimeout: CONNECT_TIMEOUT_MS,
      retryStrategy: retryDelayMs,
      ...options,
      replyMapping: 'legacy',
    });
    track(connection, opened);
    return connection;
  }

  const commands = open({
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // Before the first connection nobody knows yet whether the address is right: no second try.
    retryStrategy: (times) => (started ? retryDelayMs(times) : null),
  });
  let lastError: Error | undefined;
  commands.on('error', (error) => {
    lastError = error;
  });

  const failure = await connectFirst(commands, () => lastError);
  if (failure !== undefined) {
    for (const connection of opened) connection.disconnect();
    return {
      ok: false,
      error: { message: `cannot reach Redis at ${address}: ${explainConnectError(failure)}; ${HINT}` },
    };
  }
  started = true;
  commands.on('close', () =>
    changes.report({
      up: false,
      message: `Redis at ${address} is gone${lastError ? `: ${explainConnectError(lastError)}` : ''}`,
    }),
  );
  commands.on('ready', () => {
    lastError = undefined;
    changes.report({ up: true, message: `Redis at ${address} is back` });
  });

  return {
    ok: true,
    engine: {
      kind: 'redis',
      name: 'Redis',
      prefix,
      commands,
      openWorkerConnection: () => open({ maxRetriesPerRequest: null }),
      onStateChange: changes.onStateChange,
      close: async () => {
        commands.removeAllListeners('close');
        for (const connection of opened) connection.disconnect();
      },
    },
  };
}

const HINT = 'start it, or leave EBB_QUEUE_URL unset to use the embedded queue';

/** Resolves to what went wrong, or to undefined once Redis answers. */
async function connectFirst(connection: Redis, lastError: () => Error | undefined): Promise<Error | undefined> {
  try {
    await connection.connect();
    await connection.ping();
    return undefined;
  } catch (error) {
    // connect() itself only says "Connection is closed"; the cause came as an event.
    return lastError() ?? (error instanceof Error ? error : new Error(String(error)));
  }
}

/** Keeps a connection and all its duplicates (BullMQ makes one for each worker) in `opened`, and hears their errors. */
function track(connection: Redis, opened: Redis[]): void {
  opened.push(connection);
  // An error event without a listener is printed by ioredis; the state of the engine is told by `commands` alone.
  connection.on('error', () => {});
  const duplicate = connection.duplicate.bind(connection);
  connection.duplicate = (options) => {
    const copy = duplicate(options);
    track(copy, opened);
    return copy;
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
