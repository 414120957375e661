import type { Engine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createPostgresStore } from './postgres.ts';
import { createRecordReader } from './record-json.ts';
import { createRedisStore } from './redis.ts';

/** The store on an engine. It opens nothing of its own: closing the engine ends it. */
export async function createStore({ engine, log }: { engine: Engine; log: Log }): Promise<Store> {
  const records = createRecordReader({ log });
  if (engine.kind === 'redis') return engine.guard(createRedisStore({ engine, records }));
  return engine.guard(await createPostgresStore({ engine, records }));
}
