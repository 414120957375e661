import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { HTTPException } from 'hono/http-exception';
import type { DaemonOperator, HoldDocument } from '../../../ports/operator.ts';
import type { Log } from '../../../ports/telemetry.ts';
import { STATUS } from '../api/answer.ts';
import { ownFormGuard } from '../guards.ts';
import type { Tokens } from '../tokens.ts';
import { computeView } from './compute-view.tsx';
import { fleetView } from './fleet-view.tsx';
import { HoldFields, parseFields, ReleaseFields } from './form-bodies.ts';
import { errorView, releaseView } from './small-views.tsx';

const DECISIONS_SHOWN = 20;
const LONGEST_QUERY = 200;
const MOST_FORM_BYTES = 16 * 1024;
const MOST_PER_PAGE = 1000;
const ID = /^[a-z0-9-]{1,100}$/;

/** What was done, by the word that the address has after it; never a text from outside. */
const DONE: ReadonlyMap<string, string> = new Map([
  ['held', 'The hold is set. What follows from it is on its way.'],
  ['released', 'The hold is released. What follows from it is on its way.'],
]);

const NO_TOKEN = 'This is no token of the daemon: check it, and send the form again';

interface PageOptions {
  operator: DaemonOperator;
  tokens: Tokens;
  log: Log;
}

/** The pages for people. */
export function pageRoutes({ operator, tokens, log }: PageOptions): Hono {
  const app = new Hono();
  for (const path of ['/', '/computes/*', '/holds/*']) {
    app.post(path, ownFormGuard(), bodyLimit({ maxSize: MOST_FORM_BYTES }));
  }
  addFleet(app, operator);
  addCompute(app, operator, tokens);
  addRelease(app, operator, tokens);
  app.onError(async (error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    log.error({ err: error, path: context.req.path }, 'a page failed');
    const readiness = await operator.readiness().catch(() => undefined);
    return context.html(errorView({ message: 'It failed; the log says why.', readiness }), 500);
  });
  return app;
}

function addFleet(app: Hono, operator: DaemonOperator): void {
  app.get('/', async (context) => {
    const q = (context.req.query('q') ?? '').trim().slice(0, LONGEST_QUERY);
    const page = Number(context.req.query('page') ?? 1) || 1;
    const [status, fleet, decisions] = await Promise.all([
      operator.status(),
      operator.fleet({ q, page }),
      operator.decisions({ limit: DECISIONS_SHOWN }),
    ]);
    if (!status.ok) return failed(context, status.error);
    if (!decisions.ok) return failed(context, decisions.error);
    return context.html(fleetView({ status: status.value, fleet, decisions: decisions.value, q }));
  });
}

function addCompute(app: Hono, operator: DaemonOperator, tokens: Tokens): void {
  const tokensAreSet = tokens.guardReading;
  app.get('/computes/:id', async (context) => {
    const compute = await operator.compute(context.req.param('id'));
    if (!compute.ok) return failed(context, compute.error);
    const done = DONE.get(context.req.query('done') ?? '');
    return context.html(computeView({ compute: compute.value, done, tokensAreSet }));
  });
  app.post('/computes/:id/holds', async (context) => {
    const compute = await operator.compute(context.req.param('id'));
    if (!compute.ok) return failed(context, compute.error);
    const fields = parseFields(HoldFields, await formOf(context));
    const { written } = fields;
    const again = (problem: string, status: 400 | 401 | 404 | 409 | 503) =>
      context.html(computeView({ compute: compute.value, written, problem, tokensAreSet }), status);
    if (!fields.ok) return again(fields.problem, 400);
    const { token, owner, for_seconds, min_cu, max_cu, suspend_timeout_seconds, freeze, reason } = fields.value;
    const holder = tokens.holderOf(token);
    if (!holder) return again(NO_TOKEN, 401);
    const [minCu, maxCu] = [min_cu ?? max_cu, max_cu ?? min_cu];
    const held = await operator.hold({
      compute: compute.value.compute_id,
      owner: holder.name ?? owner,
      ...{ reason, forSeconds: for_seconds },
      ...(minCu !== undefined && maxCu !== undefined && { size: { minCu, maxCu } }),
      ...(suspend_timeout_seconds !== undefined && { suspendTimeoutSeconds: suspend_timeout_seconds }),
      ...(freeze && { freeze: true }),
    });
    if (!held.ok) return again(held.error.message, STATUS[held.error.code]);
    return context.redirect(`/computes/${compute.value.compute_id}?done=held`, 303);
  });
}

function addRelease(app: Hono, operator: DaemonOperator, tokens: Tokens): void {
  const tokensAreSet = tokens.guardReading;
  app.get('/holds/:id', async (context) => {
    const hold = await holdOf(operator, context.req.param('id'));
    return hold ? context.html(releaseView({ hold, tokensAreSet })) : noHold(context);
  });
  app.post('/holds/:id/release', async (context) => {
    const hold = await holdOf(operator, context.req.param('id'));
    if (!hold) return noHold(context);
    const fields = parseFields(ReleaseFields, await formOf(context));
    const { written } = fields;
    const again = (problem: string, status: 400 | 401 | 404 | 409 | 503) =>
      context.html(releaseView({ hold, written, problem, tokensAreSet }), status);
    if (!fields.ok) return again(fields.problem, 400);
    const holder = tokens.holderOf(fields.value.token);
    if (!holder) return again(NO_TOKEN, 401);
    const released = await operator.release({ target: hold.id, owner: holder.name ?? fields.value.owner });
    if (!released.ok) return again(released.error.message, STATUS[released.error.code]);
    return context.redirect(`/computes/${hold.compute_id}?done=released`, 303);
  });
}

async function holdOf(operator: DaemonOperator, id: string): Promise<HoldDocument | undefined> {
  if (!ID.test(id)) return undefined;
  let after: string | undefined;
  do {
    const page = await operator.holds({ limit: MOST_PER_PAGE, after });
    if (!page.ok) return undefined;
    const found = page.value.items.find((hold) => hold.id === id);
    if (found) return found;
    after = page.value.next ?? undefined;
  } while (after !== undefined);
  return undefined;
}

/** What is no form has no fields: what is missing is then said. */
async function formOf({ req }: Context): Promise<Record<string, unknown>> {
  return req.parseBody().catch(() => ({}));
}

function noHold(context: Context): Response | Promise<Response> {
  return context.html(errorView({ message: 'There is no such hold; it has expired or was released.' }), 404);
}

function failed(context: Context, { code, message }: { code: keyof typeof STATUS; message: string }) {
  return context.html(errorView({ message }), STATUS[code]);
}
