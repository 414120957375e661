import type { Engine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import { limitsOf, type StoreLimits } from './limits.ts';
import { createOverrideReaders } from './override-json.ts';
import { createPostgresStore } from './postgres.ts';
import { createRecordReader } from './record-json.ts';
import { createRedisStore } from './redis.ts';

/** The store on an engine. It opens no connection of its own. */
export async function createStore(options: {
  engine: Engine;
  log: Log;
  limits?: Partial<StoreLimits>;
}): Promise<Store> {
  const { engine, log } = options;
  const parts = {
    records: createRecordReader({ log }),
    overrides: createOverrideReaders({ log }),
    limits: { ...limitsOf(engine), ...options.limits },
  };
  if (engine.kind === 'redis') return engine.translateOutages(createRedisStore({ engine, ...parts }));
  return engine.translateOutages(await createPostgresStore({ engine, ...parts }));
}
