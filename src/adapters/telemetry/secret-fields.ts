import { stdSerializers } from 'pino';
import { REDACTED } from './redactor.ts';

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

/** What a line says is flat; whatever lies deeper is some library's own object, of which a line needs nothing. */
const DEEPEST = 8;

/**
 * The fields of a log line without the values of those whose name says that they are secret, at any depth, also in errors and their
 * causes. pino's own redaction by paths needs a path for each depth, and twenty times as long for a line.
 */
export function withoutSecretFields(fields: Readonly<Record<string, unknown>>, depth = 0): Record<string, unknown> {
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
