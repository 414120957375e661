import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import type { Platform, RequestLog } from './platform.ts';
import type { RateLimits, Verdict } from './rate-limits.ts';
import type { RequestEffects, RequestFaults } from './request-faults.ts';
import { BRANCH_ROUTES } from './routes/branches.ts';
import { COMPUTE_ROUTES } from './routes/computes.ts';
import { CONSUMPTION_ROUTES } from './routes/consumption.ts';
import { KEY_ROUTES } from './routes/keys.ts';
import { OPERATION_ROUTES } from './routes/operations.ts';
import { PROJECT_ROUTES } from './routes/projects.ts';
import type { ApiRequest, Route } from './routes/route.ts';
import { USER_ROUTES } from './routes/users.ts';
import { type Answer, errorAnswer, refusalAnswer, renderCompute } from './wire/render.ts';
import type { ApiKey } from './world/accounts.ts';
import { findCompute, findProject } from './world/outcome.ts';
import { permissionRefusal } from './world/permissions.ts';

export const API_BASE = '/api/v2';

/** Requests in a minute: the value of `x-ratelimit-limit` with the behaviour `limits: told`. */
const DOCUMENTED_LIMIT = '700';

const ROUTES: readonly Route[] = [
  ...PROJECT_ROUTES,
  ...BRANCH_ROUTES,
  ...COMPUTE_ROUTES,
  ...OPERATION_ROUTES,
  ...KEY_ROUTES,
  ...USER_ROUTES,
  ...CONSUMPTION_ROUTES,
];

type Env = { Bindings: HttpBindings };

/** Sources of real time and of ids. A simulation passes its own. */
export interface EmulatorHost {
  /** Real milliseconds from an arbitrary start, never running backwards, for rate limits. */
  monotonicMs(): number;
  /** Resolves after this many real milliseconds. */
  wait(ms: number): Promise<void>;
  newId(): string;
}

interface ApiOptions {
  platform: Platform;
  host: EmulatorHost;
  requests: RequestLog;
  requestFaults: RequestFaults;
  rateLimits: RateLimits;
  /** Additional limits of the consumption routes. */
  usageLimits: RateLimits;
}

type Body = { ok: true; value: unknown } | { ok: false };

/** A request that came over HTTP or from the same process. */
interface Incoming {
  method: string;
  /** With its query. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** Empty: no body. */
  text: string;
  authorization: string;
  requestId?: string | undefined;
  /** The address of the client; empty: the same process. */
  from: string;
}

/** A request from the same process. */
export interface OwnRequest {
  method: string;
  /** Percent-encoded, relative to the API's base URL. */
  path: string;
  /** JSON text. */
  body?: string | undefined;
  key: string;
  requestId: string;
}

export interface OwnAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  text: string;
}

/** An empty body counts as no body, whatever its content type: some clients send an empty form. */
function readBody({ text }: Incoming): Body {
  if (text === '') return { ok: true, value: undefined };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false };
  }
}

function faultAnswer({ spoil }: RequestEffects): Answer | undefined {
  if (spoil?.kind !== 'status') return undefined;
  return errorAnswer(spoil.status, spoil.message ?? `injected by a fault: ${spoil.status}`, spoil.retryAfterSeconds);
}

type Authentication = { ok: true; key: ApiKey } | { ok: false; answer: Answer };

function authenticate({ authorization, from }: Incoming, platform: Platform): Authentication {
  const token = /^Bearer (.+)$/.exec(authorization)?.[1] ?? '';
  const outcome = platform.run({ kind: 'use_key', token, from });
  if (!outcome.ok) return { ok: false, answer: refusalAnswer(outcome.refusal) };
  if (outcome.key === undefined) return { ok: false, answer: errorAnswer(500, 'incomplete key') };
  return { ok: true, key: outcome.key };
}

/** Limits are per account: the organization of a key, or its user. */
function admit({ host, rateLimits, usageLimits }: ApiOptions, key: ApiKey, route: string): Verdict {
  const account = key.orgId ?? key.userId;
  const nowMs = host.monotonicMs();
  if (route.includes(' /consumption_history/')) {
    const verdict = usageLimits.admit(account, route, nowMs);
    if (!verdict.ok) return verdict;
  }
  return rateLimits.admit(account, route, nowMs);
}

function answerRoute({ platform }: ApiOptions, route: Route, request: ApiRequest, key: ApiKey): Answer {
  const refusal = permissionRefusal(platform.world(), key, route.needs(request));
  return refusal === undefined ? route.answer({ ...request, key }, platform) : refusalAnswer(refusal);
}

/** Checks the request before the route runs, so that a refused request changes nothing but the last use of its key. */
function answerRequest(
  options: ApiOptions,
  incoming: Incoming,
  route: Route | undefined,
  body: Body,
  effects: RequestEffects,
): Answer {
  const injected = faultAnswer(effects);
  if (injected !== undefined) return injected;
  const authentication = authenticate(incoming, options.platform);
  if (!authentication.ok) return authentication.answer;
  const { key } = authentication;
  const verdict = admit(options, key, `${incoming.method} ${route?.template}`);
  if (!verdict.ok) return errorAnswer(429, verdict.message, verdict.retryAfterSeconds);
  if (route === undefined) return errorAnswer(404, 'this route does not exist');
  if (!body.ok) return errorAnswer(400, 'the body is not JSON');
  const { params, query } = incoming;
  return answerRoute(options, route, { params, query, body: body.value }, key);
}

/** A response; without `text` it has no body. */
interface Served {
  status: number;
  headers: Record<string, string>;
  text: string | undefined;
  spoil: RequestEffects['spoil'];
}

function send({ env }: Context<Env>, { status, headers, text, spoil }: Served): Response {
  if (text === undefined) return new Response(null, { status, headers });
  if (spoil?.kind === 'hang_up') return hangUp(env, status, text);
  if (spoil?.kind === 'wrong_json') return wrongJson(status, text);
  return new Response(text, { status, headers });
}

async function incomingOf({ req, env }: Context<Env>): Promise<Incoming> {
  const url = new URL(req.url);
  return {
    method: req.method,
    path: url.pathname + url.search,
    params: req.param(),
    query: req.query(),
    text: req.method === 'GET' ? '' : await req.text(),
    authorization: req.header('authorization') ?? '',
    requestId: req.header('x-request-id'),
    from: env.incoming.socket.remoteAddress ?? '',
  };
}

async function serve(
  options: ApiOptions,
  wrongReads: WrongReads,
  incoming: Incoming,
  route: Route | undefined,
): Promise<Served> {
  const { method, path, params, requestId = options.host.newId() } = incoming;
  const at = new Date(options.platform.clock.now()).toISOString();
  const body = readBody(incoming);
  const effects = options.requestFaults.effectsOn(method, route?.template);
  const notePatch = wrongReads.beforePatch(method, params);
  const rightAnswer = answerRequest(options, incoming, route, body, effects);
  if (rightAnswer.status < 400) notePatch?.();
  const answer = wrongReads.applyTo(method, rightAnswer, effects);
  options.requests.add({
    at,
    method,
    path,
    ...(route === undefined ? {} : { route: route.template }),
    status: answer.status,
    ...(body.ok && body.value !== undefined ? { body: body.value } : {}),
    request_id: requestId,
  });
  if (effects.delayMs > 0) await options.host.wait(effects.delayMs);
  const limit = options.platform.peek().behaviours.limits === 'told' ? { 'x-ratelimit-limit': DOCUMENTED_LIMIT } : {};
  const headers = { 'content-type': 'application/json', 'x-request-id': requestId, ...limit, ...answer.headers };
  return { status: answer.status, headers, text: textOf(answer, requestId), spoil: effects.spoil };
}

function textOf({ status, body }: Answer, requestId: string): string | undefined {
  if (body === undefined) return undefined;
  return JSON.stringify(status >= 400 && typeof body === 'object' ? { request_id: requestId, ...body } : body);
}

const MATCHERS = ROUTES.map((route) => ({
  route,
  names: [...route.template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string),
  pattern: new RegExp(`^${route.template.replaceAll(/\{\w+\}/g, '([^/]+)')}$`),
}));

/** The first route of a method and a path, with the values of its parameters. */
function matching(method: string, path: string): Pick<Incoming, 'params'> & { route?: Route } {
  for (const { route, names, pattern } of MATCHERS) {
    const values = route.method === method ? pattern.exec(path) : null;
    if (!values) continue;
    const params = names.map((name, index) => [name, decodeURIComponent(values[index + 1] ?? '')]);
    return { route, params: Object.fromEntries(params) };
  }
  return { params: {} };
}

/** Answers a request of the same process without HTTP messages, which would cost more than the answer itself. */
async function answerOwn(options: ApiOptions, wrongReads: WrongReads, request: OwnRequest): Promise<OwnAnswer> {
  const { method, path, body = '', key, requestId } = request;
  const [pathname = '', search = ''] = path.split('?');
  const { route, params } = matching(method, pathname);
  const incoming = {
    method,
    path: `${API_BASE}${path}`,
    params,
    text: body,
    requestId,
    from: '',
    query: Object.fromEntries(new URLSearchParams(search)),
    authorization: `Bearer ${key}`,
  };
  const { status, headers, text = '', spoil } = await serve(options, wrongReads, incoming, route);
  if (spoil?.kind === 'hang_up') throw new Error('the connection was cut');
  return { status, headers, text: spoil?.kind === 'wrong_json' ? halfOf(text) : text };
}

/** Serves the routes of the specification, over HTTP and for the same process. Records each request. */
export function createApi(options: ApiOptions): {
  app: Hono<Env>;
  answer: (request: OwnRequest) => Promise<OwnAnswer>;
} {
  const app = new Hono<Env>();
  const wrongReads = createWrongReads(options.platform);
  const served = async (context: Context<Env>, route: Route | undefined) =>
    send(context, await serve(options, wrongReads, await incomingOf(context), route));
  for (const route of ROUTES) {
    const path = route.template.replaceAll(/\{(\w+)\}/g, ':$1');
    app.on(route.method, `${API_BASE}${path}`, (context) => served(context, route));
  }
  app.all(`${API_BASE}/*`, (context) => served(context, undefined));
  return { app, answer: (request) => answerOwn(options, wrongReads, request) };
}

function halfOf(text: string): string {
  return text.slice(0, Math.floor(text.length / 2));
}

/** Sends the head and half of the body, then cuts the connection. */
function hangUp({ outgoing }: HttpBindings, status: number, body: string): Response {
  outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) });
  outgoing.write(halfOf(body), () => outgoing.socket?.destroy());
  return RESPONSE_ALREADY_SENT;
}

/** A complete answer with a JSON content type and an invalid body. */
function wrongJson(status: number, body: string): Response {
  return new Response(halfOf(body), { status, headers: { 'content-type': 'application/json' } });
}

/** The faults `stale_reads` and `duplicates`. Reads are then like reads from a replica that lags behind. */
interface WrongReads {
  /** Reads the state of a compute before a PATCH. The returned function stores it, once the PATCH has succeeded. */
  beforePatch(method: string, params: Readonly<Record<string, string>>): (() => void) | undefined;
  /** Changes the answer to a GET as the faults say; returns any other answer unchanged. */
  applyTo(method: string, answer: Answer, effects: RequestEffects): Answer;
}

type Entry = Record<string, unknown>;

const CHANGEABLE = [
  'autoscaling_limit_min_cu',
  'autoscaling_limit_max_cu',
  'suspend_timeout_seconds',
  'updated_at',
] as const;

const LISTS = ['endpoints', 'projects', 'branches', 'operations'] as const;

function createWrongReads(platform: Platform): WrongReads {
  /** By compute id: the fields before its last successful PATCH, and the time of that PATCH. */
  const before = new Map<string, { fields: Entry; atMs: number }>();

  /** The entry as before its last PATCH, if that was less than `staleMs` ago. */
  const outdated = (entry: Entry, staleMs: number): Entry => {
    const patched = before.get(String(entry.id));
    return patched && platform.clock.now() - patched.atMs < staleMs ? { ...entry, ...patched.fields } : entry;
  };

  return {
    beforePatch(method, { project_id: projectId, endpoint_id: computeId }) {
      if (method !== 'PATCH' || projectId === undefined || computeId === undefined) return undefined;
      const world = platform.world();
      const project = findProject(world, projectId);
      const compute = findCompute(world, projectId, computeId);
      if (!project.ok || !compute.ok) return undefined;
      const shown: Entry = { ...renderCompute(compute.value, project.value, world) };
      const fields = Object.fromEntries(CHANGEABLE.map((name) => [name, shown[name]]));
      return () => void before.set(computeId, { fields, atMs: platform.clock.now() });
    },
    applyTo(method, answer, { staleMs = 0, duplicates }) {
      if (method !== 'GET' || answer.status !== 200 || (staleMs === 0 && !duplicates)) return answer;
      const body = { ...(answer.body as Entry) };
      if (body.endpoint) body.endpoint = outdated(body.endpoint as Entry, staleMs);
      for (const name of LISTS) {
        if (!Array.isArray(body[name])) continue;
        const entries: Entry[] = body[name].map((entry) => outdated(entry, staleMs));
        const [first] = entries;
        body[name] = duplicates && first ? [...entries, outdated(first, Number.POSITIVE_INFINITY)] : entries;
      }
      return { ...answer, body };
    },
  };
}
