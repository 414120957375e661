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

/** Requests from within the process have no socket. */
type Env = { Bindings: Partial<HttpBindings> };

/** Real time and ids, which a simulation replaces. */
export interface EmulatorHost {
  /** Real milliseconds from an arbitrary start, never running backwards: rate limits count in it. */
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

/** An empty body counts as no body, whatever its content type: some clients send an empty form. */
async function readBody(context: Context<Env>): Promise<Body> {
  if (context.req.method === 'GET') return { ok: true, value: undefined };
  const text = await context.req.text();
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

function authenticate(context: Context<Env>, platform: Platform): Authentication {
  const token = /^Bearer (.+)$/.exec(context.req.header('authorization') ?? '')?.[1] ?? '';
  const from = context.env.incoming?.socket.remoteAddress ?? '';
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

/** Every refusal comes before the route, so a refused request changes nothing. */
function answerRequest(
  options: ApiOptions,
  context: Context<Env>,
  route: Route | undefined,
  body: Body,
  effects: RequestEffects,
): Answer {
  const injected = faultAnswer(effects);
  if (injected !== undefined) return injected;
  const authentication = authenticate(context, options.platform);
  if (!authentication.ok) return authentication.answer;
  const { key } = authentication;
  const verdict = admit(options, key, `${context.req.method} ${route?.template}`);
  if (!verdict.ok) return errorAnswer(429, verdict.message, verdict.retryAfterSeconds);
  if (route === undefined) return errorAnswer(404, 'this route does not exist');
  if (!body.ok) return errorAnswer(400, 'the body is not JSON');
  const request = { params: context.req.param(), query: context.req.query(), body: body.value };
  return answerRoute(options, route, request, key);
}

function send(
  context: Context<Env>,
  answer: Answer,
  headers: Record<string, string>,
  effects: RequestEffects,
): Response {
  if (answer.body === undefined) return new Response(null, { status: answer.status, headers });
  const isError = answer.status >= 400 && typeof answer.body === 'object';
  const text = JSON.stringify(isError ? { request_id: headers['x-request-id'], ...answer.body } : answer.body);
  if (effects.spoil?.kind === 'hang_up') return hangUp(context.env, answer.status, text);
  if (effects.spoil?.kind === 'wrong_json') return wrongJson(answer.status, text);
  return new Response(text, { status: answer.status, headers });
}

async function serve(
  options: ApiOptions,
  wrongReads: WrongReads,
  context: Context<Env>,
  route: Route | undefined,
): Promise<Response> {
  const requestId = context.req.header('x-request-id') ?? options.host.newId();
  const at = new Date(options.platform.clock.now()).toISOString();
  const url = new URL(context.req.url);
  const body = await readBody(context);
  const effects = options.requestFaults.effectsOn(context.req.method, route?.template);
  wrongReads.note(context.req.method, context.req.param());
  const answer = wrongReads.applyTo(context.req.method, answerRequest(options, context, route, body, effects), effects);
  options.requests.add({
    at,
    method: context.req.method,
    path: url.pathname + url.search,
    ...(route === undefined ? {} : { route: route.template }),
    status: answer.status,
    ...(body.ok && body.value !== undefined ? { body: body.value } : {}),
    request_id: requestId,
  });
  if (effects.delayMs > 0) await options.host.wait(effects.delayMs);
  const limit = options.platform.peek().behaviours.limits === 'told' ? { 'x-ratelimit-limit': DOCUMENTED_LIMIT } : {};
  const headers = { 'content-type': 'application/json', 'x-request-id': requestId, ...limit, ...answer.headers };
  return send(context, answer, headers, effects);
}

/** The routes of the specification; each request is recorded. */
export function createApi(options: ApiOptions): Hono<Env> {
  const app = new Hono<Env>();
  const wrongReads = createWrongReads(options.platform);
  for (const route of ROUTES) {
    const path = route.template.replaceAll(/\{(\w+)\}/g, ':$1');
    app.on(route.method, `${API_BASE}${path}`, (context) => serve(options, wrongReads, context, route));
  }
  app.all(`${API_BASE}/*`, (context) => serve(options, wrongReads, context, undefined));
  return app;
}

/** Sends the head and half of the body, then cuts the connection. Within the process, the body ends in an error. */
function hangUp({ outgoing }: Partial<HttpBindings>, status: number, body: string): Response {
  if (outgoing === undefined) {
    const cut = new Error('the connection was cut');
    return new Response(new ReadableStream({ start: (stream) => stream.error(cut) }), { status });
  }
  outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) });
  outgoing.write(body.slice(0, Math.floor(body.length / 2)), () => outgoing.socket?.destroy());
  return RESPONSE_ALREADY_SENT;
}

/** A complete answer with a JSON content type and an invalid body. */
function wrongJson(status: number, body: string): Response {
  return new Response(body.slice(0, Math.floor(body.length / 2)), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}

/** The faults `stale_reads` and `duplicates`: reads like those from a replica that lags behind. */
interface WrongReads {
  /** Stores the state of a compute before a PATCH. */
  note(method: string, params: Readonly<Record<string, string>>): void;
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
  /** By compute id: the fields before its last PATCH, and the time of that PATCH. */
  const before = new Map<string, { fields: Entry; atMs: number }>();

  /** The entry as it was before a PATCH of the last `staleMs`. */
  const outdated = (entry: Entry, staleMs: number): Entry => {
    const patched = before.get(String(entry.id));
    return patched && platform.clock.now() - patched.atMs < staleMs ? { ...entry, ...patched.fields } : entry;
  };

  return {
    note(method, { project_id: projectId, endpoint_id: computeId }) {
      if (method !== 'PATCH' || projectId === undefined || computeId === undefined) return;
      const world = platform.world();
      const [project, compute] = [findProject(world, projectId), findCompute(world, projectId, computeId)];
      if (!project.ok || !compute.ok) return;
      const shown: Entry = { ...renderCompute(compute.value, project.value, world) };
      const fields = Object.fromEntries(CHANGEABLE.map((name) => [name, shown[name]]));
      before.set(computeId, { fields, atMs: platform.clock.now() });
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
