import type { Log } from '../../ports/telemetry.ts';
import { openEmbedded } from './embedded.ts';
import { groupProblem, postgresSchema, redisPrefix } from './group-names.ts';
import { type OpenedEngine, refused } from './opened-engine.ts';
import { openPostgres } from './postgres.ts';
import { openRedis } from './redis.ts';
import { isRedisUrl } from './redis-place.ts';

export interface OpenEngineOptions {
  /** `embedded:DIR`, `redis://…`, `redis+sentinel://…`, `redis+cluster://…` (each with `rediss` for TLS) or `postgres://…`. */
  url: string;
  /** Keeps fleets on one engine apart. */
  group: string;
  log: Log;
}

/**
 * Opens what queue and store rest on, within some 6 s for the first start in an embedded folder and 3 s else.
 */
export async function openEngine({ url, group, log }: OpenEngineOptions): Promise<OpenedEngine> {
  const problem = groupProblem(group);
  if (problem !== undefined) return refused(problem);
  if (url.startsWith('embedded:')) {
    return openEmbedded({ folder: url.slice('embedded:'.length), schema: postgresSchema(group), log });
  }
  if (isRedisUrl(url)) return openRedis({ url, prefix: redisPrefix(group), log });
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres({ url, schema: postgresSchema(group) });
  // The URL is not repeated: whatever it is, it may hold a password.
  return refused('EBB_QUEUE_URL must start with embedded:, redis://, rediss:// or postgres://');
}
