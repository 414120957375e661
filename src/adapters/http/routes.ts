import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { secureHeaders } from 'hono/secure-headers';
import type { DaemonOperator } from '../../ports/operator.ts';
import type { Log } from '../../ports/telemetry.ts';
import { apiRoutes } from './api/api-routes.ts';
import { bearerGuard, loopbackHostGuard } from './guards.ts';
import { indexPage } from './index-page.ts';

/** The only page that a token doesn't guard: an orchestrator's probe has none. */
const OPEN_PATH = '/healthz';

interface RoutesOptions {
  operator: DaemonOperator;
  log: Log;
  /** Asked for on every page but /healthz. */
  token: string | undefined;
  /** Asked for by whatever changes something. */
  writeToken: string;
  /** True if only this machine can reach the pages. */
  isLocal: boolean;
}

/** All routes of the daemon. Nothing that went wrong inside is told to the outside: it goes to the log. */
export function routes({ operator, log, token, writeToken, isLocal }: RoutesOptions): Hono {
  const app = new Hono();
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        styleSrc: ["'self'"],
        frameAncestors: ["'none'"],
        formAction: ["'none'"],
      },
      xFrameOptions: 'DENY',
      strictTransportSecurity: false,
    }),
  );
  app.get(OPEN_PATH, (context) => context.json({ alive: true }));
  if (token !== undefined) app.use(bearerGuard(token));
  else if (isLocal) app.use(loopbackHostGuard());
  app.get('/readyz', async (context) => {
    const readiness = await operator.readiness();
    return context.json(readiness, readiness.ready ? 200 : 503, { 'cache-control': 'no-store' });
  });
  app.get('/metrics', async (context) => {
    const { contentType, body } = await operator.metricsText();
    return context.body(body, 200, { 'content-type': contentType, 'cache-control': 'no-store' });
  });
  app.route('/api/v1', apiRoutes({ operator, writeToken }));
  app.get('/', (context) => context.html(indexPage()));
  app.notFound((context) =>
    context.json({ code: 'not_found', message: `nothing is at ${context.req.path}; see /` }, 404),
  );
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    log.error({ err: error, path: context.req.path }, 'an HTTP request failed');
    return context.json({ code: 'internal', message: 'the request failed; the log says why' }, 500);
  });
  return app;
}
