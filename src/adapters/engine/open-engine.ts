import { createHash } from 'node:crypto';
import type { Log } from '../../ports/telemetry.ts';
import { type OpenedEngine, refused } from './opened-engine.ts';
import { isRedisUrl } from './redis-place.ts';

/**
 * Opens the engine of queue and store. Takes up to 6 s for the first start in an embedded folder, and up to 3 s otherwise. Only the needed
 * driver is loaded, so that commands start fast.
 */
export async function openEngine({
  url,
  group,
  log,
}: {
  /** `embedded:DIR`, `redis://…`, `redis+sentinel://…`, `redis+cluster://…` (each with `rediss` for TLS) or `postgres://…`. */
  url: string;
  /** Keeps fleets on one engine apart. */
  group: string;
  log: Log;
}): Promise<OpenedEngine> {
  if (!GROUP.test(group)) {
    return refused(
      `the group ${JSON.stringify(group)} is not usable: set EBB_GROUP to letters, digits, ".", "_" or "-", at most 100`,
    );
  }
  if (url.startsWith('embedded:')) {
    const { openEmbedded } = await import('./embedded.ts');
    return openEmbedded({ folder: url.slice('embedded:'.length), schema: postgresSchema(group), log });
  }
  if (isRedisUrl(url)) {
    const { openRedis } = await import('./redis.ts');
    // Braces make a Cluster keep a group's keys together.
    return openRedis({ url, prefix: `{ebb-${group}}`, log });
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres.ts');
    return openPostgres({ url, schema: postgresSchema(group) });
  }
  // The URL is not shown, since it may hold a password.
  return refused('EBB_QUEUE_URL must start with embedded:, redis://, rediss:// or postgres://');
}

/** A group's name is part of keys and of a schema's name. */
const GROUP = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** A schema name that needs no quotes, unique for each group. */
function postgresSchema(group: string): string {
  if (/^[a-z0-9_]{1,50}$/.test(group)) return `ebb_${group}`;
  const hash = createHash('sha256').update(group).digest('hex').slice(0, 10);
  const readable = group.toLowerCase().replaceAll(/[^a-z0-9]/g, '_');
  return `ebb_${readable.slice(0, 40)}_${hash}`;
}
