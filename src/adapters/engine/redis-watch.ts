import type { RedisConnection } from '../../ports/engine.ts';
import type { StateChanges } from './engine-state.ts';
import { explainRedisError, isRedisAway } from './redis-connections.ts';

/** Interval between checks that Redis accepts writes. */
const PROBE_EVERY_MS = 1000;
const PROBE_KEPT_MS = 60_000;

/** Writes something small; rejects if that is not possible. */
export type Probe = () => Promise<void>;

export function createProbe({ commands, prefix }: { commands: RedisConnection; prefix: string }): Probe {
  return async () => {
    await commands.set(`${prefix}:alive`, '1', 'PX', PROBE_KEPT_MS);
  };
}

export interface WatchOptions {
  commands: RedisConnection;
  probe: Probe;
  address: string;
  report: StateChanges['report'];
}

/**
 * Reports when Redis goes away and comes back. An open connection proves little: a full server, a replica, a Cluster that lost a node, and
 * a frozen one have that too, so a small write is tried every second. Returns a function that ends the watch.
 */
export function watchRedis({ commands, probe, address, report }: WatchOptions): () => void {
  let lastError: Error | undefined;
  let probing = false;

  const gone = () => {
    const reason = lastError === undefined ? 'the connection was closed' : explainRedisError(lastError);
    report({ up: false, message: `Redis at ${address} is gone: ${reason}` });
  };

  async function check(): Promise<void> {
    if (probing || commands.status !== 'ready') return;
    probing = true;
    try {
      await probe();
      lastError = undefined;
      report({ up: true, message: `Redis at ${address} is back` });
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      const what = isRedisAway(problem) ? 'does not work' : 'refuses to be written to';
      report({ up: false, message: `Redis at ${address} ${what}: ${explainRedisError(problem)}` });
    } finally {
      probing = false;
    }
  }

  commands.on('error', (error: Error) => {
    lastError = error;
  });
  commands.on('close', gone);
  commands.on('ready', () => void check());
  const timer = setInterval(() => void check(), PROBE_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
