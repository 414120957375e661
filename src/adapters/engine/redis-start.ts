import type { RedisConnection } from '../../ports/engine.ts';
import type { Log } from '../../ports/telemetry.ts';
import { START_IT } from './opened-engine.ts';
import { CONNECT_TIMEOUT_MS } from './redis-connections.ts';
import { explainRedisError } from './redis-errors.ts';
import type { RedisPlace } from './redis-place.ts';
import type { Probe } from './redis-watch.ts';

/** BullMQ needs commands that older ones don't have. */
const OLDEST_VERSION = 6.2;

export interface FirstConnection {
  commands: RedisConnection;
  place: RedisPlace;
  probe: Probe;
  log: Log;
}

/** Resolves to what is wrong, or to undefined once a Redis answers that is new enough and lets itself be written to. */
export async function connectFirst({ commands, place, probe, log }: FirstConnection): Promise<string | undefined> {
  let cause: Error | undefined;
  // connect() itself only says "Connection is closed"; the cause comes as an event.
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
