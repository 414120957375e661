import { CERTIFICATE_ERROR } from '../../common/certificate-errors.ts';
import { oneLine } from '../../common/safe-text.ts';
import type { CountError, CountOutcome, CountRequest } from '../../ports/connections.ts';

/** Reads a secret. Called before each count, since the secret may be rotated. Rejects with a message for people. */
export type ReadSecret = () => Promise<string>;

/** True for Node's codes of TLS errors. */
export const isTlsError = (code: string) => code.startsWith('ERR_SSL') || CERTIFICATE_ERROR.test(code);

/** The message becomes one printable line: parts of it come from a source, which is not trusted. */
export function failed(code: CountError['code'], message: string): { ok: false; error: CountError } {
  return { ok: false, error: { code, message: oneLine(message) } };
}

/** Counts `atOnce` computes at a time. An exception of `ask` becomes an outcome. */
export async function countEach(
  requests: readonly CountRequest[],
  atOnce: number,
  ask: (request: CountRequest) => Promise<CountOutcome>,
): Promise<Map<string, CountOutcome>> {
  const outcomes = new Map<string, CountOutcome>();
  const waiting = requests.values();
  const work = async (): Promise<void> => {
    for (const request of waiting) outcomes.set(request.compute.computeId, await ask(request).catch(unexpected));
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, requests.length) }, work));
  return outcomes;
}

function unexpected(error: unknown): { ok: false; error: CountError } {
  return failed('unavailable', error instanceof Error ? error.message : 'unknown failure');
}
