import { z } from 'zod';
import { SETTINGS } from './declarations.ts';
import { settingsSchema } from './schema.ts';

/** The JSON Schema (draft 7, which editors know) of `ebb.yaml`, generated from the schema that reads it, with the help of each setting. */
export function settingsJsonSchema(): Record<string, unknown> {
  const { properties, ...schema } = z.toJSONSchema(settingsSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
  });
  const described = Object.entries(SETTINGS).map(([name, { help }]) => [
    name,
    { description: help, ...(properties?.[name] as object) },
  ]);
  return { title: 'ebb settings', ...schema, properties: Object.fromEntries(described) };
}
