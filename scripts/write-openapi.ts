/** Writes schema/openapi.json; a test holds that it is what the code generates. */
import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../src/adapters/http/api/api-routes.ts';

writeFileSync(new URL('../schema/openapi.json', import.meta.url), `${JSON.stringify(openApiDocument(), null, 2)}\n`);
