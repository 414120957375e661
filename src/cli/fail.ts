/**
 * An error that a person can act on: its message says what is wrong and what to do, in one line, or in one line for each of
 * several problems. Thrown by commands, told by `main`; everything else that is thrown is a fault of ebb.
 */
export class UserError extends Error {
  override readonly name = 'UserError';
}

/** What goes to stderr. A stack, with its causes, only for those who ask for it. */
export function describeFailure(error: unknown, { verbose }: { verbose: boolean }): string {
  const message = error instanceof Error ? error.message : String(error);
  const summary = error instanceof UserError ? sentence(message) : `ebb: unexpected error: ${message}${hint(verbose)}`;
  return verbose ? [summary, ...stacksOf(error)].join('\n') : summary;
}

/** Several problems already say where they are; a prefix would only get in the way of editors that jump to the place. */
function sentence(message: string): string {
  return message.includes('\n') ? message : `ebb: ${message}`;
}

function hint(verbose: boolean): string {
  return verbose ? '' : '; run it again with --verbose and report what it prints';
}

/** Stacks only: other properties of an error may hold a request with its key. */
function stacksOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const causes = error.cause === undefined ? [] : stacksOf(error.cause);
  return [error.stack ?? error.message, ...causes];
}
