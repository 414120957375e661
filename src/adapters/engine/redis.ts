import type { RedisConnection } from '../../ports/engine.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createGuard, createStateChanges } from './engine-state.ts';
import { type OpenedEngine, refused, START_IT } from './opened-engine.ts';
import {
  awayMessage,
  CONNECT_TIMEOUT_MS,
  createRedisConnections,
  explainRedisError,
  isRedisAway,
} from './redis-connections.ts';
import { type RedisPlace, redisPlace } from './redis-place.ts';
import { createProbe, type Probe, watchRedis } from './redis-watch.ts';

export interface OpenRedisOptions {
  /** One Redis, or the forms of redis-place.ts for Sentinel and Cluster. */
  url: string;
  prefix: string;
  log: Log;
}

/** Opens a Redis; one that is away, or can't be written to, is an error after at most 3 s. */
export async function openRedis({ url, prefix, log }: OpenRedisOptions): Promise<OpenedEngine> {
  const place = redisPlace(url);
  // The URL is not repeated: whatever it is, it may hold a password.
  if (place === undefined) {
    return refused(
      'EBB_QUEUE_URL is not a URL of Redis: write redis://HOST, redis+sentinel://HOST,HOST/NAME or redis+cluster://HOST,HOST',
    );
  }
  const connections = createRedisConnections(place);
  const commands = connections.openCommands();
  const probe = createProbe({ commands, prefix });
  const problem = await connectFirst({ commands, place, probe, log });
  if (problem !== undefined) {
    connections.closeAll();
    return refused(`cannot use Redis at ${place.address}: ${problem}`);
  }
  connections.started();
  const { report, onStateChange, end } = createStateChanges();
  const stopWatching = watchRedis({ commands, probe, address: place.address, report });
  return {
    ok: true,
    engine: {
      kind: 'redis',
      name: 'Redis',
      prefix,
      commands,
      openWorkerConnection: connections.openWorker,
      onStateChange,
      ...createGuard({ message: awayMessage, isAway: isRedisAway }),
      close: async () => {
        end();
        stopWatching();
        connections.closeAll();
      },
    },
  };
}

/** BullMQ needs commands that older ones don't have. */
const OLDEST_VERSION = 6.2;

interface FirstConnection {
  commands: RedisConnection;
  place: RedisPlace;
  probe: Probe;
  log: Log;
}

/** Resolves to the problem, or to undefined once a Redis answers that is new enough and accepts writes. */
async function connectFirst({ commands, place, probe, log }: FirstConnection): Promise<string | undefined> {
  let cause: Error | undefined;
  // connect() itself only rejects with "Connection is closed"; the cause comes as an event.
  const effectivePolicies = (error: Error) => {
    cause = error;
  };
  commands.on('error', effectivePolicies);
  const limit = startLimit(commands);
  try {
    // A Cluster that is disconnected while it connects leaves its promise open for ever.
    return await Promise.race([checkFirst({ commands, place, probe, log }), limit.over]);
  } catch (error) {
    cause ??= error instanceof Error ? error : new Error(String(error));
    return `${explainRedisError(cause)}; ${START_IT}`;
  } finally {
    limit.cancel();
    commands.removeListener('error', effectivePolicies);
  }
}

async function checkFirst({ commands, place, probe, log }: FirstConnection): Promise<string | undefined> {
  await commands.connect();
  const info = await commands.info();
  const problem = wrongVersion(info) ?? wrongMode(info, place);
  if (problem !== undefined) return problem;
  await probe();
  warnOfEviction(await policyOf(commands), log);
  return undefined;
}

/** The driver's own limit ends with the handshake of TCP; a frozen Redis still does that. */
function startLimit(commands: RedisConnection): { over: Promise<never>; cancel: () => void } {
  let cancel = () => {};
  const over = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error('timeout'));
      commands.disconnect();
    }, CONNECT_TIMEOUT_MS);
    cancel = () => clearTimeout(timer);
  });
  return { over, cancel };
}

function wrongVersion(info: string): string | undefined {
  const version = /^redis_version:(\d+\.\d+)/m.exec(info)?.[1];
  if (version === undefined || Number(version) >= OLDEST_VERSION) return undefined;
  return `it is version ${version}, and ebb needs ${OLDEST_VERSION} or newer`;
}

function wrongMode(info: string, place: RedisPlace): string | undefined {
  const mode = /^redis_mode:(\w+)/m.exec(info)?.[1];
  if (mode === 'sentinel') return 'it is a Sentinel; write redis+sentinel://HOST:PORT,…/NAME';
  if (mode === 'cluster' && place.kind === 'single')
    return 'it is part of a Cluster; write redis+cluster://HOST:PORT,…';
  const isReplica = /^role:slave/m.test(info);
  return isReplica && place.kind !== 'cluster' ? 'it is a read-only replica: name the primary' : undefined;
}

/** From the memory section, since hosted ones refuse CONFIG. A hosted one may leave the line out too. */
async function policyOf(commands: RedisConnection): Promise<string | undefined> {
  const reply: unknown = await commands.call('INFO', 'memory');
  return /^maxmemory_policy:(\S+)/m.exec(String(reply))?.[1];
}

function warnOfEviction(policy: string | undefined, log: Log): void {
  if (policy === undefined || policy === 'noeviction') return;
  log.warn(
    { policy },
    `Redis may throw away what ebb keeps in it: its maxmemory-policy is ${policy}; set it to noeviction`,
  );
}
