import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { lockHolder } from '../adapters/engine/folder-lock.ts';
import type { OperatorClientOptions } from '../adapters/http/operator-client.ts';
import { replaceFile } from '../common/replace-file.ts';
import type { Operator } from '../ports/operator.ts';
import type { QueueLocation } from '../settings/addresses.ts';
import type { Settings } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';

/** Tells commands how to reach the daemon that has the embedded engine of a folder open. */
const DaemonFile = z.looseObject({ url: z.url(), token: z.string().min(1), pid: z.number().int() });
type DaemonFile = z.infer<typeof DaemonFile>;

/** How long to wait for a starting daemon, which has the store open for some seconds before it answers; real milliseconds. */
const STARTING_MS = 15_000;
const POLL_EVERY_MS = 200;

function pathIn(folder: string): string {
  return join(folder, 'daemon.json');
}

/**
 * Writes the file that tells commands on this machine where the daemon is. Returns a function that removes it. Only for embedded engines, since
 * commands open other stores directly.
 */
export async function announce(
  queue: QueueLocation,
  daemon: { url: string; token: string },
): Promise<() => Promise<void>> {
  if (queue.kind !== 'embedded') return async () => {};
  await writeDaemonFile(folderOf(queue), daemon);
  return () => removeDaemonFile(queue);
}

/** Removes the file. A starting daemon does so too, since a killed one leaves its file. The caller must hold the lock on the folder. */
export async function removeDaemonFile(queue: QueueLocation): Promise<void> {
  if (queue.kind === 'embedded') await rm(pathIn(folderOf(queue)), { force: true });
}

/** The folder of an embedded engine. */
export function folderOf({ url }: QueueLocation): string {
  return url.reveal().slice('embedded:'.length);
}

/** Writes the file atomically, readable only for its owner. */
async function writeDaemonFile(folder: string, { url, token }: { url: string; token: string }): Promise<void> {
  const text = JSON.stringify({ url: reachable(url), token, pid: process.pid });
  await replaceFile(pathIn(folder), `${text}\n`, { mode: 0o600 });
}

/**
 * Reads the file. Returns undefined if there is none, as while a daemon starts or stops. Also returns undefined if the file's daemon no longer
 * holds the lock on the folder: the token must not be sent to another process that listens at the address of a killed daemon.
 */
async function readDaemonFile(folder: string): Promise<DaemonFile | undefined> {
  try {
    const daemon = DaemonFile.parse(JSON.parse(await readFile(pathIn(folder), 'utf8')));
    return daemon.pid === lockHolder(folder) ? daemon : undefined;
  } catch {
    return undefined;
  }
}

/** Waits until the daemon on the folder can be reached; undefined if that takes too long. */
export async function daemonOnceStarted(folder: string, waitMs = STARTING_MS): Promise<DaemonFile | undefined> {
  const giveUpMs = performance.now() + waitMs;
  for (;;) {
    const daemon = await readDaemonFile(folder);
    if (daemon || performance.now() >= giveUpMs) return daemon;
    await delay(POLL_EVERY_MS);
  }
}

/** The daemon that has an embedded store open. Undefined if no daemon has, or if it can't be reached yet. */
export async function daemonOnFolder(queue: QueueLocation): Promise<Operator | undefined> {
  const daemon = await readDaemonFile(folderOf(queue));
  return daemon && clientOf({ url: daemon.url, token: daemon.token, from: commandLineCaller().who });
}

/** Creates a client. Its module is loaded on use, since undici takes 0.1 s to load, and most commands don't need it. */
async function clientOf(options: OperatorClientOptions): Promise<Operator> {
  const { createOperatorClient } = await import('../adapters/http/operator-client.ts');
  return createOperatorClient(options);
}

/** Replaces an address that means all addresses of this machine by the loopback address, which such a daemon also serves. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** The time limit of an answer, since shell completion must be fast; real milliseconds. */
const ANSWER_MS = 1_000;
/** Shell completion reads only one page of the list. */
const MAX_IDS = 1_000;

/** The ids of computes that the daemon on this machine knows, for shell completion. Sends no token unless the daemon's file names one. */
export async function computeIdsFromDaemon({ queue, listen }: Settings): Promise<string[] | undefined> {
  const announced = queue.kind === 'embedded' ? await readDaemonFile(folderOf(queue)) : undefined;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  const { url, token } = announced ?? { url: `http://${host}:${listen.port}`, token: undefined };
  const client = await clientOf({ url, token, answerMs: ANSWER_MS });
  const page = await client.computes({ limit: MAX_IDS });
  return page.ok ? page.value.items.map(({ compute_id }) => compute_id) : undefined;
}
