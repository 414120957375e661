import { Hono } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { HTTPException } from 'hono/http-exception';
import { secureHeaders } from 'hono/secure-headers';
import type { Operator } from '../../ports/operator.ts';
import type { Log } from '../../ports/telemetry.ts';
import { indexPage } from './index-page.ts';

/** The only page that a token doesn't guard: an orchestrator's probe has none. */
const OPEN_PATH = '/healthz';

/** All routes of the daemon. Nothing that went wrong inside is told to the outside: it goes to the log. */
export function routes({ operator, log, token }: { operator: Operator; log: Log; token: string | undefined }): Hono {
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
  if (token !== undefined) app.use(bearerAuth({ token, realm: 'ebb' }));
  app.get('/readyz', async (context) => {
    const readiness = await operator.readiness();
    return context.json(readiness, readiness.ready ? 200 : 503, { 'cache-control': 'no-store' });
  });
  app.get('/metrics', async (context) => {
    const { contentType, body } = await operator.metricsText();
    return context.body(body, 200, { 'content-type': contentType, 'cache-control': 'no-store' });
  });
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
