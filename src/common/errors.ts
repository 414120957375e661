/** An error and its causes, outermost first, each once. */
export function errorChain(error: unknown): unknown[] {
  const chain: unknown[] = [];
  let next = error;
  while (next !== undefined && !chain.includes(next)) {
    chain.push(next);
    next = next instanceof Error ? next.cause : undefined;
  }
  return chain;
}

/** An error and its causes in one line, such as `project p-1: reading its records: connection refused`. */
export function describeChain(error: unknown): string {
  return errorChain(error).map(messageOf).join(': ');
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Anything that was thrown, as an error. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The code of an error of the system, such as `ENOENT`, for a message. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}

/** Runs one step of a task; an error names the failed step, with the original error as its cause. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new Error(name, { cause });
  }
}

/** Runs the work and then the clean-up, also after a failure. An error of the work takes precedence over one of the clean-up. */
export async function thenCleanUp<T>(work: () => Promise<T>, cleanUp: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await cleanUp().catch(() => undefined);
    throw error;
  }
  await cleanUp();
  return result;
}
