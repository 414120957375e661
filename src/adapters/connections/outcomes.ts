import { CERTIFICATE_ERROR } from '../../common/certificate-errors.ts';
import { oneLine } from '../../common/safe-text.ts';
import type { CountError, CountOutcome, CountRequest } from '../../ports/connections.ts';

/** Called before each count, so that the secret can be rotated. Rejects with a message for people. */
export type ReadSecret = () => Promise<string>;

export type Read<T> = { ok: true; value: T } | { ok: false; error: CountError };

/** True for the codes of Node for errors of TLS. */
export const isTlsError = (code: string) => code.startsWith('ERR_SSL') || CERTIFICATE_ERROR.test(code);

/** The message becomes one printable line: parts of it come from a source, which is not trusted. */
export function failed(code: CountError['code'], message: string): { ok: false; error: CountError } {
  return { ok: false, error: { code, message: oneLine(message) } };
}

/** Counts `atOnce` computes at a time; an exception becomes an outcome. */
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
