import type { Exchange, Transport, WireRequest } from './http-transport.ts';

const ID = '[a-z0-9-]+';
const COMPUTE_PATH = new RegExp(`^/projects/${ID}/endpoints/${ID}$`);
const RESTART_PATH = new RegExp(`^/projects/${ID}/endpoints/${ID}/restart$`);
const READ_PATH = /^\/[\x21-\x7e]*$/;
const SETTINGS_FIELDS = new Set(['autoscaling_limit_min_cu', 'autoscaling_limit_max_cu', 'suspend_timeout_seconds']);

/**
 * The last door before the wire for everything the daemon sends: GET without a body, PATCH of the three settings of one
 * compute, and restart. Anything else is refused here, whatever the layers above believe they ask for.
 *
 * Invariant: it checks the very bytes that are sent (method, path, body), not what the caller says about them.
 */
export function withDaemonGuard(send: Transport): Transport {
  return async (request, signal) => (isAllowed(request) ? send(request, signal) : REFUSAL);
}

const REFUSAL: Exchange = {
  kind: 'failure',
  code: 'forbidden',
  mayHaveArrived: false,
  message: 'not sent: the daemon may only read, change size and timeout of a compute, and restart it',
};

function isAllowed(request: WireRequest): boolean {
  const { method, path, body } = request;
  if (method === 'GET') return body === undefined && READ_PATH.test(path);
  if (method === 'POST') return body === undefined && RESTART_PATH.test(path);
  if (method === 'PATCH') return body !== undefined && COMPUTE_PATH.test(path) && isSettingsPatch(body);
  return false;
}

function isSettingsPatch(body: string): boolean {
  const parsed = parseObject(body);
  if (parsed === undefined || Object.keys(parsed).join() !== 'endpoint') return false;
  const { endpoint } = parsed;
  if (typeof endpoint !== 'object' || endpoint === null || Array.isArray(endpoint)) return false;
  const fields = Object.entries(endpoint);
  return fields.length > 0 && fields.every(([name, value]) => SETTINGS_FIELDS.has(name) && typeof value === 'number');
}

/**
 * Only text that is exactly what its own parse writes: with a key given twice, or a number beyond a double, this parser and
 * the service's could read two different bodies.
 */
function parseObject(body: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed !== 'object' || parsed === null || JSON.stringify(parsed) !== body) return undefined;
    return { ...parsed };
  } catch {
    return undefined;
  }
}
