import { createInterface } from 'node:readline';
import { request } from 'undici';
import { LONGEST_ANSWER_MS } from '../../ports/operator.ts';
import { DUMP_PATH } from './dump-route.ts';

/** Yields the lines of a running daemon's dump, without line ends. Throws if the daemon can't give it, or stops in between. */
export async function* dumpOfDaemon({ url, token }: { url: string; token: string }): AsyncGenerator<string> {
  const { statusCode, body } = await request(`${url}${DUMP_PATH}`, {
    headers: { authorization: `Bearer ${token}` },
    headersTimeout: LONGEST_ANSWER_MS,
    bodyTimeout: LONGEST_ANSWER_MS,
  });
  if (statusCode !== 200) {
    await body.dump();
    throw new Error(`the daemon at ${url} gives no dump (status ${statusCode}): stop it, and dump again`);
  }
  yield* createInterface({ input: body, crlfDelay: Number.POSITIVE_INFINITY });
}
