import type { Log } from '../../ports/telemetry.ts';
import { createGuard, createStateChanges } from './engine-state.ts';
import { type OpenedEngine, refused } from './opened-engine.ts';
import { createRedisConnections } from './redis-connections.ts';
import { awayMessage, isRedisAway } from './redis-errors.ts';
import { redisPlace } from './redis-place.ts';
import { connectFirst } from './redis-start.ts';
import { createProbe, watchRedis } from './redis-watch.ts';

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
