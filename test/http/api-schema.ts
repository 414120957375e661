/** What the OpenAPI document says of answers, asked of real ones. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument } from '../../src/adapters/http/api/api-routes.ts';
import { API_ROUTES } from '../../src/adapters/http/api/route-table.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(openApiDocument(), 'api');

/** In what an answer to a request is other than described, a line each. `path` is what comes after `/api/v1/`. */
export function answerProblems(method: string, path: string, { status, body }: { status: number; body: unknown }) {
  const [plain = ''] = path.split('?');
  const route = API_ROUTES.find((one) => one.method === method.toLowerCase() && matches(one.path, `/${plain}`));
  if (!route) return status >= 400 ? [] : [`${method} ${path} is not described`];
  const described = status < 400 ? status : `${Math.floor(status / 100)}XX`;
  const place = ['paths', `/api/v1${route.path}`, route.method, 'responses', `${described}`];
  const pointer = [...place, 'content', 'application/json', 'schema'].map(escaped).join('/');
  const validate = ajv.getSchema(`api#/${pointer}`);
  if (!validate) return [`${method} ${path} answers ${status}, which is not described`];
  validate(body);
  return (validate.errors ?? []).map((error) => `${method} ${path}: ${error.instancePath} ${error.message}`);
}

function matches(described: string, path: string): boolean {
  const [one, other] = [described.split('/'), path.split('/')];
  return one.length === other.length && one.every((part, index) => part === '{id}' || part === other[index]);
}

function escaped(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}
