import type { CountError, CountOutcome, CountRequest } from '../../ports/connections.ts';

/** Reads the secret that a source names, before each count, so that it can be rotated. Rejects with a message for people. */
export type ReadSecret = () => Promise<string>;

export type Read<T> = { ok: true; value: T } | { ok: false; error: CountError };

export function failed(code: CountError['code'], message: string): { ok: false; error: CountError } {
  return { ok: false, error: { code, message } };
}

/** Counts the connections of each compute, this many at a time; an exception becomes an outcome. */
export async function countEach(
  requests: readonly CountRequest[],
  atOnce: number,
  ask: (request: CountRequest) => Promise<CountOutcome>,
): Promise<Map<string, CountOutcome>> {
  const outcomes = new Map<string, CountOutcome>();
  const waiting = requests.values();
  const work = async (): Promise<void> => {
    for (const request of waiting) {
      outcomes.set(request.compute.computeId, await ask(request).catch(unexpected));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, requests.length) }, work));
  return outcomes;
}

/** Anything that was not foreseen, in its own words. */
export function unexpected(error: unknown): { ok: false; error: CountError } {
  return failed('unavailable', error instanceof Error ? error.message : 'unknown failure');
}
