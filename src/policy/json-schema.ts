import { z } from 'zod';
import { PolicyFile } from './schema/policy-file.ts';
import { ZONE_NAMES } from './schema/zone-names.ts';

type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** The JSON Schema (draft 7, which editors know) of a policy file, generated from the schema that reads it. */
export function policyJsonSchema(): JsonValue {
  const schema = z.toJSONSchema(PolicyFile, { io: 'input', target: 'draft-7' }) as JsonValue;
  const described = {
    title: 'ebb policies',
    ...(withoutImpossible(schema) as object),
    definitions: { zone: { enum: [...ZONE_NAMES] } },
  };
  return described as JsonValue;
}

/** Keys that nothing may be written for yet are no help in an editor: they are unknown keys there. */
function withoutImpossible(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutImpossible);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => !isImpossible(part));
  return Object.fromEntries(entries.map(([key, part]) => [key, withoutImpossible(part)]));
}

function isImpossible(schema: JsonValue): boolean {
  return JSON.stringify(schema) === '{"not":{}}';
}
