import {
  type DestinationStream,
  destination as fileDestination,
  type Level,
  type LoggerOptions,
  pino,
  stdTimeFunctions,
} from 'pino';
import { prettyFactory } from 'pino-pretty';
import { printable, printableJson, printableLines } from '../../common/safe-text.ts';
import type { Log } from '../../ports/telemetry.ts';
import { withoutSecretFields } from './secret-fields.ts';

const STDOUT_FD = 1;
export interface LogOptions {
  level: Level;
  /** Default: standard output. */
  destination?: DestinationStream | undefined;
  /** Lines for people instead of JSON. */
  pretty: boolean;
  /** Every line goes through it on its way out. */
  redact(line: string): string;
}

/**
 * JSON lines with ISO time and level names. Writing is synchronous and in this thread: the last line before a crash is the one
 * that matters.
 */
export function createLog({ level, destination, pretty: readable, redact }: LogOptions): Log {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: withoutSecretFields },
    // Errors are made plain there; pino would take what they became for an error again.
    serializers: { err: (shown: unknown) => shown },
    hooks: { streamWrite: (line) => printableJson(redact(line)) },
  };
  const out = destination ?? fileDestination({ fd: STDOUT_FD, sync: true });
  const logger = pino(options, readable ? readableLines(out, destination === undefined) : out);
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

/** Formats in this thread and at once, unlike the transports and streams that pino offers for it. */
function readableLines(out: DestinationStream, colorize: boolean): DestinationStream {
  const format = prettyFactory({
    ...{ singleLine: true, translateTime: 'SYS:HH:MM:ss', ...(!colorize && { colorize }) },
    messageFormat: (line, messageKey) => printable(String(line[messageKey])),
  });
  return {
    write(line) {
      out.write(printableLines(String(format(line))));
    },
  };
}
