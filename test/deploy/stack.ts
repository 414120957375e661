/** What `docker compose --env-file deploy/try/try.env up` starts, as processes of this machine: no container engine is needed. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';
import { startPrometheus } from '../support/prometheus-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { readCompose, readEnvFile, serviceOf } from './compose-file.ts';

export interface Stack {
  ebb: EbbProcess;
  /** What is mounted as /ebb: a copy of deploy/try. */
  fleetFolder: string;
  /** Variables of the container `ebb`, with the places of this machine. */
  env: Record<string, string>;
  /** Answer of Prometheus' HTTP API, below /api/v1; throws what it says is wrong. */
  ask<T>(path: string): Promise<T>;
  close(): Promise<void>;
}

type Undo = (() => Promise<unknown>)[];

/** Starts Valkey's stand-in, the emulator, ebb and Prometheus with the commands and settings of docker-compose.yml. */
export async function startStack(): Promise<Stack> {
  const undo: Undo = [];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return { ...(await startAll(undo)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startAll(undo: Undo): Promise<Omit<Stack, 'close'>> {
  const compose = readCompose(readEnvFile('deploy/try/try.env'));
  const folder = await makeFolder();
  undo.push(folder.remove);
  const fleetFolder = join(folder.path, 'ebb');
  await cp('deploy/try', fleetFolder, { recursive: true });
  const redis = await startRedisServer({ args: serviceOf(compose, 'valkey').command.slice(1) });
  undo.push(redis.close);
  const apiUrl = await startEmulator(serviceOf(compose, 'emulator').command, fleetFolder, undo);
  const port = await freePort();
  const service = serviceOf(compose, 'ebb');
  const env = {
    ...service.environment,
    EBB_API_URL: apiUrl,
    EBB_API_KEY_FILE: join(fleetFolder, 'api-key'),
    EBB_QUEUE_URL: redis.url,
    EBB_LISTEN: `127.0.0.1:${port}`,
  };
  const ebb = startEbb(service.command, { env, cwd: fleetFolder });
  undo.push(() => ebb.kill());
  const { command } = serviceOf(compose, 'prometheus');
  const prometheus = await startPrometheus({ command, folder: folder.path, target: `127.0.0.1:${port}` });
  undo.push(prometheus.close);
  return { ebb, fleetFolder, env, ask: prometheus.ask };
}

async function startEmulator(command: readonly string[], fleetFolder: string, undo: Undo): Promise<string> {
  const here = command.map((word) => word.replace('0.0.0.0:8099', '127.0.0.1:0').replace('/ebb/', `${fleetFolder}/`));
  const emulator = startEbb([...here, '--operation-time', '100']);
  undo.push(() => emulator.kill());
  const line = await vi.waitFor(() => emulator.lines[0] ?? raise(emulator.stderr()), { timeout: 30_000 });
  return (JSON.parse(line) as { url: string }).url;
}

function raise(message: string): never {
  throw new Error(message);
}
