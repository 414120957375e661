/** Writes the JSON Schemas of schema/; a test holds that they are what the code generates. */
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { Message } from '../src/adapters/notifications/sender.ts';
import { policyJsonSchema } from '../src/policy/json-schema.ts';
import { settingsJsonSchema } from '../src/settings/declarations.ts';

const SCHEMAS = {
  policies: policyJsonSchema(),
  settings: settingsJsonSchema(),
  notification: z.toJSONSchema(Message, { target: 'draft-7' }),
};

for (const [name, schema] of Object.entries(SCHEMAS)) {
  writeFileSync(new URL(`../schema/${name}.schema.json`, import.meta.url), `${JSON.stringify(schema, null, 2)}\n`);
}
