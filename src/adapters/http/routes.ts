import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { requestId } from 'hono/request-id';
import { secureHeaders } from 'hono/secure-headers';
import { EngineAwayError } from '../../ports/engine.ts';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Log } from '../../ports/telemetry.ts';
import { apiRoutes } from './api/api-routes.ts';
import { type Guarded, knownHostGuard, readerGuard, roleGuard, unavailable } from './guards.ts';
import { assetRoutes } from './page/assets.ts';
import { pageRoutes } from './page/page-routes.ts';
import type { Targets } from './roles.ts';
import type { Tokens } from './tokens.ts';

/** The only page that a token doesn't guard: an orchestrator's probe has none. */
const OPEN_PATH = '/healthz';

interface RoutesOptions {
  operator: DaemonOperator;
  log: Log;
  tokens: Tokens;
  /** True if only this machine can reach the pages. */
  isLocal: boolean;
  /** Names under which they answer without a token, in small letters. */
  hosts: readonly string[];
}

/** All routes of the daemon. Nothing that went wrong inside is told to the outside: it goes to the log. */
export function routes({ operator, log, tokens, isLocal, hosts }: RoutesOptions): Hono<Guarded> {
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
      // With "no-referrer" a browser would not say either where a form comes from.
      referrerPolicy: 'same-origin',
      xFrameOptions: 'DENY',
      strictTransportSecurity: false,
    }),
  );
  // That of the request, if it has one: the audit holds it.
  app.use(requestId({ limitLength: 64 }));
  app.get(OPEN_PATH, (context) => context.json({ alive: true }));
  // A browser sends no password for them unasked, and they tell nothing.
  app.route('/', assetRoutes());
  // Everything else is true for a moment only, or not for everybody.
  app.use(async (context, next) => {
    await next();
    context.header('cache-control', 'no-store');
  });
  const anything = { role: 'read', targets: (): Targets => 'all', operator, log } as const;
  if (tokens.guardReading) app.use(readerGuard(tokens), roleGuard(anything));
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
  app.route('/', pageRoutes({ operator, tokens, log }));
  app.notFound((context) =>
    context.json({ code: 'not_found', message: `nothing is at ${context.req.path}; see /` }, 404),
  );
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    // The engine has told it, once: not each request.
    if (error instanceof EngineAwayError)
      return context.json({ code: 'unavailable', message: unavailable(error) }, 503);
    log.error({ err: error, path: context.req.path }, 'an HTTP request failed');
    return context.json({ code: 'internal', message: 'the request failed; the log says why' }, 500);
  });
  return app;
}
