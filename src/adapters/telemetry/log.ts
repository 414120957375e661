import { createRequire } from 'node:module';
import {
  type DestinationStream,
  destination as fileDestination,
  type Level,
  type LoggerOptions,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from 'pino';
import type PinoPretty from 'pino-pretty';
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
  /** Applied to every line. */
  redact(line: string): string;
}

/** JSON lines with ISO time and level names. Writing is synchronous, since the last line before a crash matters most. */
export function createLog({ level, destination, pretty: readable, redact }: LogOptions): Log {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: {
      level: (label) => ({ level: label }),
      log: (fields) => withoutOwnFields(withoutSecretFields(fields)),
    },
    // `withoutSecretFields` has already serialised errors.
    serializers: { err: (shown: unknown) => shown },
    hooks: { streamWrite: (line) => printableJson(redact(line)) },
  };
  const out = destination ?? fileDestination({ fd: STDOUT_FD, sync: true });
  const logger = pino(
    options,
    readable ? readableLines(out, { colorize: destination === undefined, showsFields: level === 'debug' }) : out,
  );
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

/**
 * One line per event: its message, and that of its error; `showsFields` adds all fields and the stack. Synchronous, unlike pino's
 * transports and streams.
 */
function readableLines(
  out: DestinationStream,
  { colorize, showsFields }: { colorize: boolean; showsFields: boolean },
): DestinationStream {
  // Loaded on use, since most commands write no such lines.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  const format = prettyFactory({
    translateTime: 'SYS:HH:MM:ss',
    ...(!colorize && { colorize }),
    ...(showsFields ? { singleLine: true } : { hideObject: true, errorLikeObjectKeys: [] }),
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

/** Fields that pino writes itself; a second `level` would hide the severity of the line. */
const OWN_FIELDS = ['level', 'time', 'msg'];

/** Renames such fields, for example to `level_`. `LogFields` excludes them, but an object of an unknown type may still have them. */
function withoutOwnFields(fields: Record<string, unknown>): Record<string, unknown> {
  for (const name of OWN_FIELDS) {
    if (!(name in fields)) continue;
    fields[`${name}_`] = fields[name];
    delete fields[name];
  }
  return fields;
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

/** Fields of log lines are hardly nested. Anything deeper than this belongs to an object of a library, and is left out. */
const DEEPEST = 8;

/**
 * Redacts fields with secret names at any depth, even in errors and their causes. pino's redaction needs a path for each depth, and takes
 * twenty times as long.
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
  if (Array.isArray(value)) return value.map((item) => shownValue(item, depth + 1));
  if ('toJSON' in value) return value;
  return withoutSecretFields({ ...(value instanceof Error ? stdSerializers.err(value) : value) }, depth);
}
