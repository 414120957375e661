import {
  type DestinationStream,
  destination as fileDestination,
  type Level,
  type LoggerOptions,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from 'pino';
import { prettyFactory } from 'pino-pretty';
import { printable, printableJson, printableLines } from '../../common/safe-text.ts';
import type { Log } from '../../ports/telemetry.ts';
import { REDACTED } from './redactor.ts';

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
    // The format makes errors plain; pino would serialise them again.
    serializers: { err: (shown: unknown) => shown },
    hooks: { streamWrite: (line) => printableJson(redact(line)) },
  };
  const out = destination ?? fileDestination({ fd: STDOUT_FD, sync: true });
  const logger = pino(
    options,
    readable ? readableLines(out, { colorize: destination === undefined, isWhole: level === 'debug' }) : out,
  );
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

/**
 * Formats one line for each event: its message, and that of its error; with all fields and the stack only if `isWhole`. Formats
 * synchronously in this thread, unlike pino's transports and streams.
 */
function readableLines(
  out: DestinationStream,
  { colorize, isWhole }: { colorize: boolean; isWhole: boolean },
): DestinationStream {
  const format = prettyFactory({
    ...{ translateTime: 'SYS:HH:MM:ss', ...(!colorize && { colorize }) },
    ...(isWhole ? { singleLine: true } : { hideObject: true, errorLikeObjectKeys: [] }),
    messageFormat: (line, messageKey) => printable(messageOf(line, messageKey)),
  });
  return {
    write(line) {
      out.write(printableLines(String(format(line))));
    },
  };
}

function messageOf(line: Record<string, unknown>, messageKey: string): string {
  const message = String(line[messageKey]);
  const cause = typeof line.err === 'object' && line.err !== null && 'message' in line.err ? `${line.err.message}` : '';
  return cause === '' || message.includes(cause) ? message : `${message}: ${cause}`;
}

const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'key',
  'api_key',
  'apiKey',
  'token',
  'authorization',
  'Authorization',
  'password',
  'dsn',
  'secret',
]);

/** Log lines are flat; deeper levels are objects of a library, of which nothing is logged. */
const DEEPEST = 8;

/**
 * The fields of a log line without the values of secret names, at any depth, also in errors and their causes. pino's own redaction by
 * paths needs a path for each depth, and takes twenty times as long for a line.
 */
function withoutSecretFields(fields: Readonly<Record<string, unknown>>, depth = 0): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    shown[name] = SECRET_FIELDS.has(name) ? REDACTED : shownValue(value, depth + 1);
  }
  return shown;
}

function shownValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEEPEST) return '[left out]';
  if (Array.isArray(value)) return value.map((one) => shownValue(one, depth + 1));
  if ('toJSON' in value) return value;
  return withoutSecretFields({ ...(value instanceof Error ? stdSerializers.err(value) : value) }, depth);
}
