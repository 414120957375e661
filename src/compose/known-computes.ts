import { createOperatorClient } from '../adapters/http/operator-client.ts';
import type { Settings } from '../settings/settings.ts';
import { folderOf, readDaemonFile } from './daemon-file.ts';

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
  const page = await createOperatorClient({ url, token, answerMs: ANSWER_MS }).computes({ limit: MOST_IDS });
  return page.ok ? page.value.items.map(({ compute_id }) => compute_id) : undefined;
}
