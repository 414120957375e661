import { messageOf } from '../common/errors.ts';
import type { Result } from '../common/result.ts';

/**
 * An error that a person can act on. Its message has one line for each problem: what is wrong, and what to do. Commands throw it and `main`
 * prints it. Any other error is a bug of ebb.
 */
export class UserError extends Error {
  override readonly name = 'UserError';
}

/** Returns the value of a result, or throws its problem as a UserError. */
export function orFail<T>(result: Result<T>): T {
  if (!result.ok) throw new UserError(result.problem);
  return result.value;
}

/** The text for standard error. Only with `--verbose` it has the stacks of the error and its causes. */
export function describeFailure(error: unknown, { verbose }: { verbose: boolean }): string {
  const message = messageOf(error);
  const summary = error instanceof UserError ? withPrefix(message) : `ebb: unexpected error: ${message}`;
  if (verbose) return [summary, ...stacksOf(error)].join('\n');
  return error instanceof UserError ? summary : `${summary}; run it again with --verbose and report what it prints`;
}

/** Several problems begin with their places, so they get no prefix: editors jump to the place. */
function withPrefix(message: string): string {
  return message.includes('\n') ? message : `ebb: ${message}`;
}

/** Only stacks are printed: other properties of an error may hold a request with its key. */
function stacksOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const causes = error.cause === undefined ? [] : stacksOf(error.cause);
  return [error.stack ?? error.message, ...causes];
}
