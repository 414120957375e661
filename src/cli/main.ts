import { WAITS } from '../common/waits.ts';
import { describeFailure } from './fail.ts';
import { writeErr, writeErrLine } from './output.ts';
import { runProgram } from './program.ts';

/** After this time the process ends, even if a failed command has left something open. */
const EXIT_GRACE_MS = 2_000;

/** The reader of the output has gone (`ebb … | head`). This is no error. */
function endOnBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit();
  throw error;
}

process.stdout.on('error', endOnBrokenPipe);
process.stderr.on('error', endOnBrokenPipe);

WAITS.subscribe((line) => writeErrLine(String(line)));

const args = process.argv.slice(2);

/** Settles when the command has ended; never rejects. The built command awaits it, since CommonJS has no top-level await. */
export const ended = runProgram(args).catch((error: unknown) => {
  writeErr(`${describeFailure(error, { verbose: args.includes('--verbose') })}\n`);
  process.exitCode = 1;
  setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
});
