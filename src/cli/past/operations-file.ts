import { createReadStream } from 'node:fs';
import { errorCode } from '../../common/errors.ts';
import { createOperationLog, type OperationLog } from '../../domain/awake/operation-log.ts';
import { createOperationsReader } from '../../domain/awake/operations-csv.ts';
import { UserError } from '../fail.ts';

const PIECE_BYTES = 256 * 1024;

/** Reads the log of an `operations.csv` in chunks. Throws a UserError with the line of the problem. */
export async function readOperationsFile(file: string): Promise<OperationLog> {
  const log = createOperationLog();
  const reader = createOperationsReader(log);
  const fail = (problem: { line: number; message: string } | undefined) => {
    if (problem) throw new UserError(`${file}:${problem.line}: ${problem.message}`);
  };
  try {
    const pieces = createReadStream(file, { encoding: 'latin1', highWaterMark: PIECE_BYTES });
    for await (const piece of pieces) fail(reader.push(String(piece)));
    fail(reader.end());
    return log;
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `--operations: ${file} cannot be read (${errorCode(error)}); check the path and its permissions`,
    );
  }
}
