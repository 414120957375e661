import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endServer, onFreePort, startServer } from './child-server.ts';
import { programPath } from './programs.ts';

export interface RedisServer {
  url: string;
  port: number;
  /** Ends it at once, as a crash would; what was written stays for `start`. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  /** Stops and continues the process: alive, and answering nothing. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Ends it and removes its data. */
  close(): Promise<void>;
}

export interface RedisServerOptions {
  /** Further settings, e.g. `--requirepass x`. */
  args?: readonly string[];
  /** redis-server by default. */
  program?: string;
}

/** A real redis-server on a free port, with its data in a temporary folder. */
export async function startRedisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  const { args = [], program = programPath('redis-server') } = options;
  const folder = await mkdtemp(join(tmpdir(), 'ebb-redis-'));
  const settings = ['--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes', ...args];
  const run = (on: number) => startServer(program, ['--port', `${on}`, ...settings], /Ready to accept connections/);
  const { port, started } = await onFreePort(run);
  let child = started;
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill: () => endServer(child, 'SIGKILL'),
    start: async () => {
      child = await run(port);
    },
    signal: (signal) => {
      child.kill(signal);
    },
    close: async () => {
      await endServer(child, 'SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
