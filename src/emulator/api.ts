import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import type { Platform, RequestLog } from './platform.ts';
import type { RateLimits } from './rate-limits.ts';
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

/** Requests in a minute, as answers carry it where they tell the limits. */
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

/** Requests of the same process have no socket. */
type Env = { Bindings: Partial<HttpBindings> };

/** Real time and ids, which a simulation replaces. */
export interface EmulatorHost {
  /** Real milliseconds from an arbitrary start, never running backwards: rate limits count in it. */
  monotonicMs(): number;
  /** Resolves after so many real milliseconds. */
  wait(ms: number): Promise<void>;
  newId(): string;
}

interface ApiOptions {
  platform: Platform;
  host: EmulatorHost;
  requests: RequestLog;
  requestFaults: RequestFaults;
  rateLimits: RateLimits;
  /** The limits of the consumption routes, which are counted apart. */
  usageLimits: RateLimits;
}

type Body = { ok: true; value: unknown } | { ok: false };

/** An empty body is none, whatever its content type: some clients send an empty form. */
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

function throttled(message: string, retryAfterSeconds: number | undefined): Answer {
  const headers = retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) };
  return errorAnswer(429, message, headers);
}

function faultAnswer(effects: RequestEffects): Answer | undefined {
  const { spoil } = effects;
  if (spoil?.kind !== 'status') return undefined;
  const headers =
    spoil.retryAfterSeconds === undefined ? undefined : { 'retry-after': String(spoil.retryAfterSeconds) };
  return errorAnswer(spoil.status, spoil.message ?? `injected by a fault: ${spoil.status}`, headers);
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
function accountOf(key: ApiKey): string {
  return key.orgId ?? key.userId;
}

function admit(
  { host, rateLimits, usageLimits }: ApiOptions,
  key: ApiKey,
  route: string,
): ReturnType<RateLimits['admit']> {
  const nowMs = host.monotonicMs();
  const verdict = route.includes(' /consumption_history/')
    ? usageLimits.admit(accountOf(key), route, nowMs)
    : { ok: true as const };
  return verdict.ok ? rateLimits.admit(accountOf(key), route, nowMs) : verdict;
}

function answerRoute(options: ApiOptions, route: Route, request: ApiRequest, key: ApiKey): Answer {
  const refusal = permissionRefusal(options.platform.world(), key, route.needs(request));
  return refusal === undefined ? route.answer({ ...request, key }, options.platform) : refusalAnswer(refusal);
}

/** Decides the answer to a request. Every refusal comes before the route, so a refused request changes nothing. */
function decide(
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
  if (!verdict.ok) return throttled(verdict.message, verdict.retryAfterSeconds);
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
  const answer = wrongReads.applyTo(context.req.method, decide(options, context, route, body, effects), effects);
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

/** The routes of the specification; each request is recorded with its answer. */
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

/** Sends the head and half of the body, then cuts the connection. */
function hangUp({ outgoing }: Partial<HttpBindings>, status: number, body: string): Response {
  if (outgoing === undefined) return new Response(brokenBody(), { status });
  outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) });
  outgoing.write(body.slice(0, Math.floor(body.length / 2)), () => outgoing.socket?.destroy());
  return RESPONSE_ALREADY_SENT;
}

/** The body of an answer within the process that breaks off. */
function brokenBody(): ReadableStream {
  return new ReadableStream({ start: (stream) => stream.error(new Error('the connection was cut')) });
}

/** A complete answer with a JSON content type and an invalid body. */
function wrongJson(status: number, body: string): Response {
  return new Response(body.slice(0, Math.floor(body.length / 2)), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}

/** Reads that show something else than there is, as from a replica that lags behind. */
interface WrongReads {
  /** Remembers a compute before a request that may change it. */
  note(method: string, params: Readonly<Record<string, string>>): void;
  /** The answer to a GET as the faults want it; any other answer as it is. */
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
  /** By the compute's id: its state before its last PATCH, and the time of that. */
  const before = new Map<string, { fields: Entry; atMs: number }>();

  const old = (entry: Entry, staleMs: number): Entry => {
    const known = before.get(String(entry.id));
    return known && platform.clock.now() - known.atMs < staleMs ? { ...entry, ...known.fields } : entry;
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
      if (body.endpoint) body.endpoint = old(body.endpoint as Entry, staleMs);
      for (const name of LISTS) {
        if (!Array.isArray(body[name])) continue;
        const entries: Entry[] = body[name].map((entry) => old(entry, staleMs));
        const [first] = entries;
        body[name] = duplicates && first ? [...entries, old(first, Number.POSITIVE_INFINITY)] : entries;
      }
      return { ...answer, body };
    },
  };
}
