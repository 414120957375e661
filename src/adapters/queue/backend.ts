import {
  type BackendFactory,
  type ConnectionOptions,
  createRedisBackend,
  type IQueueBackend,
  PostgresConnection,
  PostgresQueueBackend,
} from 'bullmq';
import type { Engine, PostgresEngine, RedisEngine } from '../../ports/engine.ts';

/** Engine-specific parts of BullMQ's Queue and Worker. */
export interface QueueBackend {
  /** Begins the keys on Redis; unused on Postgres. */
  prefix: string;
  /** False while the engine is known to be unavailable: then running jobs can't be finished. */
  isUp(): boolean;
  forQueues: BackendParts;
  forWorkers: BackendParts;
}

interface BackendParts {
  connection: ConnectionOptions;
  createBackend: BackendFactory<IQueueBackend>;
}

export function createQueueBackend(engine: Engine): QueueBackend {
  return engine.kind === 'redis' ? onRedis(engine) : onPostgres(engine);
}

/** Adding a job fails at once while Redis is unavailable; workers wait for it. */
function onRedis(engine: RedisEngine): QueueBackend {
  let workerConnection: ConnectionOptions | undefined;
  return {
    prefix: engine.prefix,
    isUp: () => engine.commands.status === 'ready',
    forQueues: { connection: engine.commands, createBackend: createRedisBackend },
    get forWorkers() {
      workerConnection ??= engine.openWorkerConnection();
      return { connection: workerConnection, createBackend: createRedisBackend };
    },
  };
}

function onPostgres({ pool, schema }: PostgresEngine): QueueBackend {
  const parts: BackendParts = {
    connection: {},
    createBackend: (name, options) => {
      const connection = new PostgresConnection(pool);
      // With a pool BullMQ assumes its default schema, and no option changes that. It uses the schema's name only to check the version:
      // all other statements use the pool's search path.
      Object.assign(connection, { schema });
      return new PostgresQueueBackend(connection, name, { ...options, connection: pool }, true);
    },
  };
  return { prefix: 'ebb', isUp: () => true, forQueues: parts, forWorkers: parts };
}
