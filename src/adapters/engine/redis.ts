import { asError } from '../../common/errors.ts';
import type { EngineState, RedisConnection } from '../../ports/engine.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createOutageTranslation, createStateChanges, type OpenedEngine, REMEDY, refused } from './opened-engine.ts';
import {
  awayMessage,
  CONNECT_TIMEOUT_MS,
  createRedisConnections,
  explainRedisError,
  isRedisUnavailable,
} from './redis-connections.ts';
import { type RedisPlace, redisPlace } from './redis-place.ts';

/** Connects to Redis. Fails within 3 s if it can't be reached, or can't be written to. For forms of `url` see redis-place.ts. */
export async function openRedis({
  url,
  prefix,
  log,
}: {
  url: string;
  prefix: string;
  log: Log;
}): Promise<OpenedEngine> {
  const place = redisPlace(url);
  // The URL is not shown, since it may hold a password.
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
  connections.keepReconnecting();
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
      ...createOutageTranslation({ message: awayMessage, isUnavailable: isRedisUnavailable }),
      close: async () => {
        end();
        stopWatching();
        connections.closeAll();
      },
    },
  };
}

/** BullMQ needs commands that this version of Redis introduced. */
const OLDEST_VERSION = 6.2;

interface FirstConnection {
  commands: RedisConnection;
  place: RedisPlace;
  probe: Probe;
  log: Log;
}

/** Resolves to a problem, or to undefined if Redis is suitable and accepts writes. */
async function connectFirst({ commands, place, probe, log }: FirstConnection): Promise<string | undefined> {
  let cause: Error | undefined;
  // connect() only rejects with "Connection is closed"; the cause is emitted as an event.
  const noteCause = (error: Error) => {
    cause = error;
  };
  commands.on('error', noteCause);
  const deadline = startDeadline(commands);
  try {
    // The promise of a Cluster that is disconnected while it connects never settles.
    return await Promise.race([checkFirst({ commands, place, probe, log }), deadline.passed]);
  } catch (error) {
    cause ??= asError(error);
    return `${explainRedisError(cause)}; ${REMEDY}`;
  } finally {
    deadline.cancel();
    commands.removeListener('error', noteCause);
  }
}

async function checkFirst({ commands, place, probe, log }: FirstConnection): Promise<string | undefined> {
  await commands.connect();
  const info = await commands.info();
  const problem = wrongVersion(info) ?? wrongMode(info, place);
  if (problem !== undefined) return problem;
  await probe();
  warnOfEviction(await evictionPolicyOf(commands), log);
  return undefined;
}

/** The driver's timeout covers only the TCP handshake, which a frozen Redis completes. */
function startDeadline(commands: RedisConnection): { passed: Promise<never>; cancel: () => void } {
  let cancel = () => {};
  const passed = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error('timeout'));
      commands.disconnect();
    }, CONNECT_TIMEOUT_MS);
    cancel = () => clearTimeout(timer);
  });
  return { passed, cancel };
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

/** The policy by INFO, since hosted services refuse CONFIG; undefined if INFO leaves it out. */
async function evictionPolicyOf(commands: RedisConnection): Promise<string | undefined> {
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

/** Interval between checks that Redis accepts writes. */
const PROBE_EVERY_MS = 1000;
/** The key expires, so that nothing remains of a group that has ended. */
const PROBE_TTL_MS = 60_000;

/** Writes a small key; rejects if that is not possible. */
type Probe = () => Promise<void>;

function createProbe({ commands, prefix }: { commands: RedisConnection; prefix: string }): Probe {
  return async () => {
    await commands.set(`${prefix}:alive`, '1', 'PX', PROBE_TTL_MS);
  };
}

/**
 * Reports when Redis becomes unavailable, and when it is back. A small write is tried every second, since an open connection proves little: it
 * also exists to a full server, a replica, a Cluster that lost a node, and a frozen server. Returns a function that ends the watch.
 */
function watchRedis({
  commands,
  probe,
  address,
  report,
}: {
  commands: RedisConnection;
  probe: Probe;
  address: string;
  report(state: EngineState): void;
}): () => void {
  let lastError: Error | undefined;
  let isProbing = false;

  const reportGone = () => {
    const reason = lastError === undefined ? 'the connection was closed' : explainRedisError(lastError);
    report({ up: false, message: `Redis at ${address} is gone: ${reason}` });
  };

  async function check(): Promise<void> {
    if (isProbing || commands.status !== 'ready') return;
    isProbing = true;
    try {
      await probe();
      lastError = undefined;
      report({ up: true, message: `Redis at ${address} is back` });
    } catch (error) {
      const problem = asError(error);
      const what = isRedisUnavailable(problem) ? 'does not work' : 'refuses to be written to';
      report({ up: false, message: `Redis at ${address} ${what}: ${explainRedisError(problem)}` });
    } finally {
      isProbing = false;
    }
  }

  commands.on('error', (error: Error) => {
    lastError = error;
  });
  commands.on('close', reportGone);
  commands.on('ready', () => void check());
  const timer = setInterval(() => void check(), PROBE_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
