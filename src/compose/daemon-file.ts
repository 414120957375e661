import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { lockHolder } from '../adapters/engine/folder-lock.ts';
import type { OperatorClientOptions } from '../adapters/http/operator-client.ts';
import type { Operator } from '../ports/operator.ts';
import type { QueueLocation } from '../settings/addresses.ts';
import type { Settings } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';

/** How commands reach the daemon that holds the embedded engine of a folder. */
const DaemonFile = z.looseObject({ url: z.url(), token: z.string().min(1), pid: z.number().int() });
type DaemonFile = z.infer<typeof DaemonFile>;

function pathIn(folder: string): string {
  return join(folder, 'daemon.json');
}

/**
 * Tells commands on this machine where the daemon is that has an embedded engine for itself; gives what takes that back. On a
 * server commands open the store directly, so there is nothing to tell.
 */
export async function announce(
  queue: QueueLocation,
  daemon: { url: string; token: string },
): Promise<() => Promise<void>> {
  if (queue.kind !== 'embedded') return async () => {};
  await writeDaemonFile(folderOf(queue), daemon);
  return () => forgetOlder(queue);
}

/** Removes what a daemon that was killed has left there. Only with the lock on the folder. */
export async function forgetOlder(queue: QueueLocation): Promise<void> {
  if (queue.kind === 'embedded') await rm(pathIn(folderOf(queue)), { force: true });
}

/** The folder of an embedded engine. */
export function folderOf({ url }: QueueLocation): string {
  return url.reveal().slice('embedded:'.length);
}

/** Readable for its owner alone, and never half written. */
async function writeDaemonFile(folder: string, { url, token }: { url: string; token: string }): Promise<void> {
  const unfinished = `${pathIn(folder)}.${process.pid}`;
  await rm(unfinished, { force: true });
  const text = JSON.stringify({ url: reachable(url), token, pid: process.pid });
  await writeFile(unfinished, `${text}\n`, { mode: 0o600, flag: 'wx' });
  await rename(unfinished, pathIn(folder));
}

/**
 * Undefined if there is none, as while a daemon starts or stops, and if another process holds the folder: then a daemon that was killed
 * has left the file, and its token must not be sent to whoever listens at its address now.
 */
export async function readDaemonFile(folder: string): Promise<DaemonFile | undefined> {
  try {
    const daemon = DaemonFile.parse(JSON.parse(await readFile(pathIn(folder), 'utf8')));
    return daemon.pid === lockHolder(folder) ? daemon : undefined;
  } catch {
    return undefined;
  }
}

/** The daemon that has an embedded store for itself; undefined where none says where it is. */
export async function daemonOnFolder(queue: QueueLocation): Promise<Operator | undefined> {
  const daemon = await readDaemonFile(folderOf(queue));
  return daemon && clientOf({ url: daemon.url, token: daemon.token, from: commandLineCaller().who });
}

/** The client is loaded on use: undici takes 0.1 s to load, and a command that opens the store itself does not need it. */
async function clientOf(options: OperatorClientOptions): Promise<Operator> {
  const { createOperatorClient } = await import('../adapters/http/operator-client.ts');
  return createOperatorClient(options);
}

/** One who listens on every address can be reached on this machine's own. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** Nobody waits longer for a Tab. */
const ANSWER_MS = 1_000;
/** As many as a daemon gives at once; more can't be looked through anyway. */
const MOST_IDS = 1_000;

/**
 * Ids of the computes that the daemon on this machine knows; undefined without one. Where it is not known to be ebb that listens,
 * no token is sent.
 */
export async function knownComputes({ queue, listen }: Settings): Promise<string[] | undefined> {
  const announced = queue.kind === 'embedded' ? await readDaemonFile(folderOf(queue)) : undefined;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  const { url, token } = announced ?? { url: `http://${host}:${listen.port}`, token: undefined };
  const client = await clientOf({ url, token, answerMs: ANSWER_MS });
  const page = await client.computes({ limit: MOST_IDS });
  return page.ok ? page.value.items.map(({ compute_id }) => compute_id) : undefined;
}
