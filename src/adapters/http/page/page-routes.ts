import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { compress } from 'hono/compress';
import { HTTPException } from 'hono/http-exception';
import type { z } from 'zod';
import { DAY_MS } from '../../../domain/time/units.ts';
import type { DecisionDocument } from '../../../ports/documents.ts';
import { EngineUnavailableError } from '../../../ports/engine.ts';
import {
  type DaemonOperator,
  MAX_CHARACTERS,
  MAX_PER_PAGE,
  type OperatorResult,
  type Page,
} from '../../../ports/operator.ts';
import type { Log } from '../../../ports/telemetry.ts';
import { CostQuery, FleetQuery, HistoryQuery, WasteQuery } from '../api/bodies.ts';
import { type Guarded, ownFormGuard, unavailable } from '../guards.ts';
import type { Tokens } from '../tokens.ts';
import { computeView } from './compute-view.tsx';
import { costView } from './cost-view.tsx';
import { fleetView } from './fleet-view.tsx';
import { addForm, type FormOptions, HoldFields, ReleaseFields, tokenNeed } from './form-route.ts';
import { historyView } from './history-view.tsx';
import { errorAnswer, errorView, pageAnswer, readRunbook, releaseView, runbookView } from './small-views.tsx';
import { wasteView } from './waste-view.tsx';

const COMPUTES_SHOWN = 50;
const DECISIONS_SHOWN = 20;
const HISTORY_LINES_SHOWN = 100;
const MAX_FORM_BYTES = 16 * 1024;

/** Confirmations on a page, by the value of `done` in its address. Other values show nothing: anybody can write an address. */
const DONE: ReadonlyMap<string, string> = new Map([
  ['held', 'The hold is set. Resulting changes are on their way.'],
  ['released', 'The hold is released. Resulting changes are on their way.'],
]);

/** The pages for people. */
export function pageRoutes(options: { operator: DaemonOperator; tokens: Tokens; log: Log }): Hono<Guarded> {
  const { operator, log } = options;
  const app = new Hono<Guarded>();
  app.use(compress());
  app.on('POST', ['/', '/computes/*', '/holds/*'], ownFormGuard(), bodyLimit({ maxSize: MAX_FORM_BYTES }));
  addFleet(app, operator);
  addHistory(app, operator);
  addCost(app, operator);
  addWaste(app, operator);
  app.get('/runbook', async (context) => context.html(runbookView(await readRunbook())));
  addCompute(app, operator, options);
  addRelease(app, operator, options);
  app.onError(async (error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    if (error instanceof EngineUnavailableError)
      return errorAnswer(context, { code: 'unavailable', message: unavailable(error) });
    log.error({ err: error, path: context.req.path }, 'a page failed');
    const readiness = await operator.readiness().catch(() => undefined);
    return context.html(errorView({ message: 'It failed; the log says why.', readiness }), 500);
  });
  return app;
}

function addFleet(app: Hono<Guarded>, operator: DaemonOperator): void {
  app.get('/', async (context) => {
    const query = queryOf(FleetQuery, context.req.query());
    const { sort: _sort, group: _group, page: _page, ...filter } = query;
    const [status, fleet, costs, decisions] = await Promise.all([
      operator.status(filter),
      operator.fleet({ ...query, perPage: COMPUTES_SHOWN }),
      operator.costs(),
      operator.decisions({ limit: DECISIONS_SHOWN, of: filter }),
    ]);
    if (!status.ok) return errorAnswer(context, status.error);
    if (!costs.ok) return errorAnswer(context, costs.error);
    if (!decisions.ok) return errorAnswer(context, decisions.error);
    const shown = { status: status.value, fleet, costs: costs.value.costs, decisions: decisions.value };
    return context.html(fleetView({ ...shown, query, stale: operator.staleness() }));
  });
}

function addHistory(app: Hono<Guarded>, operator: DaemonOperator): void {
  app.get('/history', async (context) => {
    const query = queryOf(HistoryQuery, context.req.query());
    const found = query.show === 'audit' ? await auditFor(operator, query) : await decisionsFor(operator, query);
    return pageAnswer(context, found, ({ items, next }) => historyView({ lines: items, next, query }));
  });
}

type HistoryAsked = z.output<typeof HistoryQuery>;

function auditFor(operator: DaemonOperator, { since, until, show: _show, ...query }: HistoryAsked) {
  const sinceMs = since === undefined ? 0 : Date.parse(since);
  const untilMs = until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until) + DAY_MS - 1;
  return operator.audit({ ...query, sinceMs, untilMs, limit: HISTORY_LINES_SHOWN });
}

/** The matching lines of the newest decisions, which the operator does not give in pages. */
async function decisionsFor(
  operator: DaemonOperator,
  { compute, owner, policy, who, kind, request }: HistoryAsked,
): Promise<OperatorResult<Page<DecisionDocument>>> {
  const found = await operator.decisions({ compute, limit: MAX_PER_PAGE, of: { q: '', owner } });
  if (!found.ok) return found;
  const matchesQuery = (line: DecisionDocument) =>
    (compute === undefined || line.compute_id === compute) &&
    (policy === undefined || line.policy === policy) &&
    (who === undefined || line.who === who) &&
    (kind === undefined || line.kind === kind) &&
    (request === undefined || line.request_id === request);
  return { ok: true, value: { items: found.value.filter(matchesQuery).slice(0, HISTORY_LINES_SHOWN), next: null } };
}

function addCost(app: Hono<Guarded>, operator: DaemonOperator): void {
  app.get('/cost', async (context) => {
    const query = queryOf(CostQuery, context.req.query());
    const [status, costs] = await Promise.all([operator.status({ owner: query.owner }), operator.costs()]);
    if (!costs.ok) return errorAnswer(context, costs.error);
    const { costs: detail } = costs.value;
    return pageAnswer(context, status, (found) =>
      costView({ status: found, detail, query, stale: operator.staleness() }),
    );
  });
}

function addWaste(app: Hono<Guarded>, operator: DaemonOperator): void {
  // The former path of /recommend.
  app.get('/waste', ({ req, redirect }) => redirect(`/recommend${new URL(req.url).search}`, 301));
  app.get('/recommend', async (context) => {
    const query = queryOf(WasteQuery, context.req.query());
    return pageAnswer(context, await operator.waste(query), (found) => wasteView({ found, query }));
  });
}

/** Parses the query of an address, without invalid parameters: a person may have typed it. */
function queryOf<Schema extends z.ZodObject>(schema: Schema, given: Record<string, string>): z.output<Schema> {
  const valid: Record<string, string> = {};
  for (const [key, text] of Object.entries(given)) {
    const value = text.trim().slice(0, MAX_CHARACTERS.query);
    if (value !== '' && schema.safeParse({ [key]: value }).success) valid[key] = value;
  }
  return schema.parse(valid);
}

function addCompute(app: Hono<Guarded>, operator: DaemonOperator, forms: FormOptions): void {
  app.get('/computes/:id', async (context) => {
    const done = DONE.get(context.req.query('done') ?? '');
    const found = await operator.compute(context.req.param('id'));
    const token = await tokenNeed(context, forms.tokens);
    return pageAnswer(context, found, (compute) => computeView({ compute, done, token, stale: operator.staleness() }));
  });
  addForm(app, forms, {
    path: '/computes/:id/holds',
    schema: HoldFields,
    find: (id) => operator.findCompute(id),
    submit({ compute_id: compute }, fields, caller) {
      const { for_seconds, min_cu, max_cu, suspend_timeout_seconds, freeze, reason, owner } = fields;
      const minCu = min_cu ?? max_cu;
      const maxCu = max_cu ?? min_cu;
      const hold = {
        compute,
        owner,
        reason,
        forSeconds: for_seconds,
        ...(minCu !== undefined && maxCu !== undefined && { size: { minCu, maxCu } }),
        ...(suspend_timeout_seconds !== undefined && { suspendTimeoutSeconds: suspend_timeout_seconds }),
        ...(freeze && { freeze: true }),
      };
      return operator.hold(hold, caller);
    },
    read: ({ compute_id }) => operator.compute(compute_id),
    view: (compute, again) => computeView({ compute, ...again }),
    done: 'held',
  });
}

function addRelease(app: Hono<Guarded>, operator: DaemonOperator, forms: FormOptions): void {
  app.get('/holds/:id', async (context) => {
    const found = await operator.findHold(context.req.param('id'));
    const token = await tokenNeed(context, forms.tokens);
    return pageAnswer(context, found, (hold) => releaseView({ hold, token }));
  });
  addForm(app, forms, {
    path: '/holds/:id/release',
    schema: ReleaseFields,
    find: (id) => operator.findHold(id),
    submit: ({ id: target }, { owner }, caller) => operator.release({ target, owner }, caller),
    read: ({ id }) => operator.findHold(id),
    view: (hold, again) => releaseView({ hold, ...again }),
    done: 'released',
  });
}
