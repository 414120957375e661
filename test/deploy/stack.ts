/** What `docker compose --env-file deploy/try/try.env up` starts, as processes of this machine: no container engine is needed. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { vi } from 'vitest';
import { endServer, freePort, startServer } from '../support/child-server.ts';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';
import { programPath } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { readCompose, readEnvFile, serviceOf } from './compose-file.ts';

export interface PrometheusSample {
  metric: Record<string, string>;
}

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
  const prometheusUrl = await startPrometheus({ command, folder: folder.path, target: `127.0.0.1:${port}`, undo });
  const ask = async <T>(path: string): Promise<T> => {
    const { body } = await request(`${prometheusUrl}/api/v1/${path}`);
    const answer = (await body.json()) as { status: string; error?: string; data: T };
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`);
    return answer.data;
  };
  return { ebb, fleetFolder, env, ask };
}

async function startEmulator(command: readonly string[], fleetFolder: string, undo: Undo): Promise<string> {
  const here = command.map((word) => word.replace('0.0.0.0:8099', '127.0.0.1:0').replace('/ebb/', `${fleetFolder}/`));
  const emulator = startEbb([...here, '--operation-time', '100']);
  undo.push(() => emulator.kill());
  const line = await vi.waitFor(() => emulator.lines[0] ?? raise(emulator.stderr()), { timeout: 30_000 });
  return (JSON.parse(line) as { url: string }).url;
}

/** Scrapes every second, and lets alerts fire at once instead of after their time; the rest is as in compose. */
async function startPrometheus(options: {
  command: readonly string[];
  folder: string;
  target: string;
  undo: Undo;
}): Promise<string> {
  const { command, folder, target, undo } = options;
  const configFolder = join(folder, 'prometheus');
  await cp('prometheus', configFolder, { recursive: true });
  await rewrite(join(configFolder, 'prometheus.yml'), (text) =>
    text.replace('ebb:9464', target).replaceAll('interval: 15s', 'interval: 1s'),
  );
  await rewrite(join(configFolder, 'rules', 'ebb.yml'), (text) => text.replaceAll(/for: \w+/g, 'for: 0s'));
  const port = await freePort();
  const here = command.map((word) =>
    word.replace('/etc/prometheus', configFolder).replace('=/prometheus', `=${join(folder, 'tsdb')}`),
  );
  const args = [...here, `--web.listen-address=127.0.0.1:${port}`];
  const child = await startServer(programPath('prometheus'), args, /Server is ready to receive web requests/);
  undo.push(() => endServer(child, 'SIGKILL'));
  return `http://127.0.0.1:${port}`;
}

function raise(message: string): never {
  throw new Error(message);
}

async function rewrite(path: string, change: (text: string) => string): Promise<void> {
  await writeFile(path, change(await readFile(path, 'utf8')));
}
