/** Writes schema/policies.schema.json; a test holds that it is what the code generates. */
import { writeFileSync } from 'node:fs';
import { policyJsonSchema } from '../src/policy/json-schema.ts';

writeFileSync(
  new URL('../schema/policies.schema.json', import.meta.url),
  `${JSON.stringify(policyJsonSchema(), null, 2)}\n`,
);
