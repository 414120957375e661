import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { requestId } from 'hono/request-id';
import { secureHeaders } from 'hono/secure-headers';
import { isLoopbackHost } from '../../common/loopback.ts';
import { EngineUnavailableError } from '../../ports/engine.ts';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Log } from '../../ports/telemetry.ts';
import { apiRoutes } from './api/api-routes.ts';
import { dumpRoute } from './dump-route.ts';
import { type Guarded, knownHostGuard, readerGuard, roleGuard, unavailable } from './guards.ts';
import { assetRoutes } from './page/layout.tsx';
import { pageRoutes } from './page/page-routes.ts';
import type { Targets, Tokens } from './tokens.ts';

/** Grace period for open requests after `close`, milliseconds. */
const CLOSE_GRACE_MS = 1_000;

/** Interval at which `close` ends idle connections, since a kept-alive connection becomes idle only when its request has ended. */
const IDLE_SWEEP_MS = 20;

export interface HttpServer {
  ok: true;
  /** `http://HOST:PORT`, with the real port if 0 was given. */
  url: string;
  /** Takes no more requests, and cuts running ones after a second. */
  close(): Promise<void>;
}

export interface HttpServerOptions {
  /** `host` without brackets; port 0 lets the system choose. */
  listen: { host: string; port: number };
  operator: DaemonOperator;
  log: Log;
  tokens: Tokens;
  /** Allows an address beyond this machine without a token. */
  insecure?: boolean;
  /** Other host names that are served without a token, besides those of this machine and the host of `listen`. */
  hosts?: readonly string[];
  /** Yields a dump of the store as lines with line ends; absent where commands open the store themselves. */
  dump?: () => AsyncIterable<string>;
}

/** Serves API and pages. An error is one line that says what to do. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer | { ok: false; error: string }> {
  const { listen, operator, log, tokens, insecure = false, hosts = [], dump } = options;
  const isLocal = isLoopbackHost(listen.host);
  if (!isLocal && !tokens.readingNeedsToken && !insecure) {
    return {
      ok: false,
      error: `${listen.host} can be reached from other machines: set EBB_TOKEN or EBB_TOKEN_FILE, listen on 127.0.0.1, or give --insecure`,
    };
  }
  const knownHosts = [listen.host.toLowerCase(), ...hosts];
  const { fetch } = routes({ operator, log, tokens, isLocal, hosts: knownHosts, dump });
  const server = createServer(getRequestListener(fetch, { overrideGlobalObjects: false }));
  const error = await listening(server, listen);
  if (error !== undefined) return { ok: false, error };
  const { port } = server.address() as AddressInfo;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return { ok: true, url: `http://${host}:${port}`, close: () => closed(server) };
}

function listening(server: Server, { host, port }: HttpServerOptions['listen']): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(listenError(error, host, port)));
    server.listen({ host, port, exclusive: true }, () => resolve(undefined));
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use; stop what listens there or set EBB_LISTEN`;
    case 'EACCES':
      return `port ${port} on ${host} needs more rights than this process has; set EBB_LISTEN to a port from 1024 on`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is not an address of this machine; set EBB_LISTEN to one that is`;
    default:
      return `cannot listen on port ${port} of ${host} (${error.code ?? error.message}); set EBB_LISTEN`;
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
    const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(cut);
      resolve();
    });
  });
}

/** Needs no token, since an orchestrator's probe has none. */
const OPEN_PATH = '/healthz';

/** All routes of the daemon. Internal errors go to the log, never to the client. */
function routes(options: {
  operator: DaemonOperator;
  log: Log;
  tokens: Tokens;
  /** True if only this machine can reach the pages. */
  isLocal: boolean;
  /** Host names that are served without a token, in small letters. */
  hosts: readonly string[];
  dump: HttpServerOptions['dump'];
}): Hono<Guarded> {
  const { operator, log, tokens, isLocal, hosts, dump } = options;
  const app = new Hono<Guarded>();
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
      },
      permissionsPolicy: { camera: [], geolocation: [], microphone: [] },
      // With "no-referrer" browsers would also send no origin with forms.
      referrerPolicy: 'same-origin',
      xFrameOptions: 'DENY',
      strictTransportSecurity: false,
    }),
  );
  // The id of each request for the audit, from its header if it has one.
  app.use(requestId({ limitLength: 64 }));
  app.get(OPEN_PATH, (context) => context.json({ alive: true }));
  // Not guarded: browsers request assets without the password, and assets contain no data.
  app.route('/', assetRoutes());
  // The other routes must not be cached: they change something, or are not for everybody.
  app.use(async (context, next) => {
    await next();
    context.header('cache-control', 'no-store');
  });
  const read = { role: 'read', targets: (): Targets => 'all', operator, log } as const;
  if (tokens.readingNeedsToken) app.use(readerGuard(tokens), roleGuard(read));
  else app.use(knownHostGuard({ isLocal, hosts }));
  app.get('/readyz', async (context) => {
    const readiness = await operator.readiness();
    return context.json(readiness, readiness.ready ? 200 : 503);
  });
  app.get('/metrics', async (context) => {
    const { contentType, body } = await operator.metricsText();
    return context.body(body, 200, { 'content-type': contentType });
  });
  app.route('/api/v1', apiRoutes({ operator, tokens, log }));
  if (dump) app.route('/', dumpRoute({ operator, tokens, log, dump }));
  app.route('/', pageRoutes({ operator, tokens, log }));
  app.notFound((context) =>
    context.json({ code: 'not_found', message: `nothing is at ${context.req.path}; see /` }, 404),
  );
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    // Not logged here, since the engine's outage is logged once.
    if (error instanceof EngineUnavailableError)
      return context.json({ code: 'unavailable', message: unavailable(error) }, 503);
    log.error({ err: error, path: context.req.path }, 'an HTTP request failed');
    return context.json({ code: 'internal', message: 'the request failed; the log says why' }, 500);
  });
  return app;
}
