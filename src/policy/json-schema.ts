import { z } from 'zod';
import { PolicyFile } from './schema/policy-file.ts';
import { ZONE_NAMES } from './schema/zone-names.ts';

type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** The JSON Schema of policy files for editors (draft 7), generated from the parser's schema. */
export function policyJsonSchema(): JsonValue {
  const schema = z.toJSONSchema(PolicyFile, { io: 'input', target: 'draft-7' }) as JsonValue;
  return {
    title: 'ebb policies',
    ...(withoutImpossible(schema) as object),
    definitions: { zone: { enum: [...ZONE_NAMES] } },
  };
}

/** Removes keys that accept no value: in an editor, they are unknown keys. */
function withoutImpossible(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutImpossible);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => JSON.stringify(part) !== '{"not":{}}');
  return Object.fromEntries(entries.map(([key, part]) => [key, withoutImpossible(part)]));
}
