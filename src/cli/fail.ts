/**
 * An error that a person can act on. Its message says what is wrong and what to do, in one line, or in one line for each of several
 * problems. Commands throw it and `main` prints it. Any other error is a bug of ebb.
 */
export class UserError extends Error {
  override readonly name = 'UserError';
}

/** The text for standard error. It has the stack and its causes only with `--verbose`. */
export function describeFailure(error: unknown, { verbose }: { verbose: boolean }): string {
  const message = error instanceof Error ? error.message : String(error);
  const summary = error instanceof UserError ? sentence(message) : `ebb: unexpected error: ${message}${hint(verbose)}`;
  return verbose ? [summary, ...stacksOf(error)].join('\n') : summary;
}

/** Several problems begin with their places, so they get no prefix: editors jump to the place. */
function sentence(message: string): string {
  return message.includes('\n') ? message : `ebb: ${message}`;
}

function hint(verbose: boolean): string {
  return verbose ? '' : '; run it again with --verbose and report what it prints';
}

/** Only stacks are printed: other properties of an error may hold a request with its key. */
function stacksOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const causes = error.cause === undefined ? [] : stacksOf(error.cause);
  return [error.stack ?? error.message, ...causes];
}
