import { createHash } from 'node:crypto';
import type { Log } from '../../ports/telemetry.ts';
import { type OpenedEngine, refused } from './opened-engine.ts';
import { isRedisUrl } from './redis-place.ts';

export interface OpenEngineOptions {
  /** `embedded:DIR`, `redis://…`, `redis+sentinel://…`, `redis+cluster://…` (each with `rediss` for TLS) or `postgres://…`. */
  url: string;
  /** Keeps fleets on one engine apart. */
  group: string;
  log: Log;
}

/**
 * Opens the engine of queue and store, within some 6 s for the first start in an embedded folder and 3 s else. Loads only the driver that
 * it needs: a command must not wait for the others.
 */
export async function openEngine({ url, group, log }: OpenEngineOptions): Promise<OpenedEngine> {
  const problem = groupProblem(group);
  if (problem !== undefined) return refused(problem);
  if (url.startsWith('embedded:')) {
    const { openEmbedded } = await import('./embedded.ts');
    return openEmbedded({ folder: url.slice('embedded:'.length), schema: postgresSchema(group), log });
  }
  if (isRedisUrl(url)) {
    const { openRedis } = await import('./redis.ts');
    return openRedis({ url, prefix: redisPrefix(group), log });
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres.ts');
    return openPostgres({ url, schema: postgresSchema(group) });
  }
  // The URL is not repeated: whatever it is, it may hold a password.
  return refused('EBB_QUEUE_URL must start with embedded:, redis://, rediss:// or postgres://');
}

const GROUP = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Checks a group's name, which becomes part of keys and of a schema's name; undefined if it is valid. */
export function groupProblem(group: string): string | undefined {
  if (GROUP.test(group)) return undefined;
  return `the group ${JSON.stringify(group)} is not usable: set EBB_GROUP to letters, digits, ".", "_" or "-", at most 100`;
}

/** The prefix of a group's keys on Redis; braces make a Cluster keep them together. */
export function redisPrefix(group: string): string {
  return `{ebb-${group}}`;
}

/** A schema name that is a plain identifier and different for different groups. */
export function postgresSchema(group: string): string {
  if (/^[a-z0-9_]{1,50}$/.test(group)) return `ebb_${group}`;
  const hash = createHash('sha256').update(group).digest('hex').slice(0, 10);
  const readable = group.toLowerCase().replaceAll(/[^a-z0-9]/g, '_');
  return `ebb_${readable.slice(0, 40)}_${hash}`;
}
