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
  return errorChain(error)
    .map((one) => (one instanceof Error ? one.message : String(one)))
    .join(': ');
}

/** Does one step of something; an error says which step failed, and has what was thrown as its cause. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new Error(name, { cause });
  }
}

/**
 * Does the work and then cleans up, also after a failure. What the work throws is what is thrown; a failure to clean up is thrown only where
 * the work was done.
 */
export async function thenCleanUp<T>(work: () => Promise<T>, cleanUp: () => Promise<unknown>): Promise<T> {
  let done: T;
  try {
    done = await work();
  } catch (error) {
    await cleanUp().catch(() => undefined);
    throw error;
  }
  await cleanUp();
  return done;
}
