/** Checks answers against the vendor's OpenAPI document, as it ships in npm `@neondatabase/api-client`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { parse } from 'yaml';

const FILE = join(import.meta.dirname, '../../node_modules/@neondatabase/api-client/public-v2-for-users.gen.yaml');
const JSON_TYPE = 'application/json';

interface Response {
  $ref?: string;
  content?: Record<string, { schema: object }>;
}
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
  components: { responses: Record<string, Response> };
}

const document: Document = parse(readFileSync(FILE, 'utf8'));
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: true });
// The package is CommonJS: what TypeScript calls its default export is the module, which is the function itself.
(formats as unknown as (ajv: Ajv) => void)(ajv);
ajv.addSchema({ ...document, $id: 'api' });

const segments = (path: string): string[] => path.split('/').filter((part) => part !== '');

/** The template that a path below /api/v2 belongs to; one without parameters wins. */
function templateOf(path: string): string | undefined {
  const given = segments(path);
  const fits = Object.keys(document.paths).filter((template) => {
    const parts = segments(template);
    return parts.length === given.length && parts.every((part, index) => part.startsWith('{') || part === given[index]);
  });
  return fits.sort((left, right) => left.split('{').length - right.split('{').length)[0];
}

const pointerPart = (part: string): string => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));

/** What is wrong with an answer; an empty list if it is as the document says. Errors have one shape on every route. */
export function problemsWith(method: string, path: string, status: number, body: unknown): string[] {
  const template = templateOf(path.split('?')[0] ?? '');
  const operation = template === undefined ? undefined : document.paths[template]?.[method.toLowerCase()];
  if (status >= 400) return check('#/components/schemas/GeneralError', body);
  if (template === undefined || operation === undefined) return [`${method} ${path} is not in the document`];
  const response = operation.responses[String(status)];
  if (response === undefined) return [`${method} ${template} does not answer ${status}`];
  if (response.$ref !== undefined) return check(`${response.$ref}/content/${pointerPart(JSON_TYPE)}/schema`, body);
  if (response.content === undefined) return body === undefined ? [] : ['a body where none should be'];
  const place = ['paths', template, method.toLowerCase(), 'responses', String(status), 'content', JSON_TYPE, 'schema'];
  return check(`#/${place.map(pointerPart).join('/')}`, body);
}

function check(pointer: string, body: unknown): string[] {
  const validate = ajv.getSchema(`api${pointer}`);
  if (validate === undefined) return [`${pointer} is not in the document`];
  if (validate(body)) return [];
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
}
