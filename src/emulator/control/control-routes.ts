import { type Context, type Handler, Hono } from 'hono';
import { z } from 'zod';
import { consumptionSchema } from '../load-schema.ts';
import type { Clients, Platform, RequestLog, SettableClock } from '../platform.ts';
import type { RequestFaults } from '../request-faults.ts';
import { type Answer, errorAnswer, refusalAnswer } from '../wire/render.ts';
import { countConnections } from '../world/connections.ts';
import type { WorldState } from '../world/entities.ts';
import { createLatencySeries } from '../world/latency.ts';
import type { Outcome } from '../world/outcome.ts';
import { createAccountRoutes } from './accounts.ts';
import { createFaultRoutes, respond, withBody } from './faults.ts';
import { answerScrape } from './metrics.ts';
import { reportState, reportUsage } from './state.ts';

interface ControlOptions {
  platform: Platform;
  clients: Clients;
  requests: RequestLog;
  requestFaults: RequestFaults;
  nextFaultId: () => string;
  seed: number;
  /** Undefined if the process that started the emulator drives its clock. */
  settableClock: SettableClock | undefined;
}

const connectBody = z.strictObject({
  connections: z.number().int().min(1).default(1),
  for_seconds: z.number().positive().optional(),
  reconnect: z.boolean().default(false),
  cu: z.number().min(0).max(56).optional(),
});

const disconnectBody = z.strictObject({ connections: z.number().int().min(1).optional() });

const clockBody = z.strictObject({
  now: z.iso.datetime({ offset: true }).transform(Date.parse).optional(),
  speed: z.number().min(0).optional(),
});

function connectionsAnswer(outcome: Outcome): Answer {
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  const { compute } = outcome;
  if (compute === undefined) return errorAnswer(500, 'the emulator lost a compute');
  return {
    status: 200,
    body: {
      compute_id: compute.id,
      state: compute.state,
      connections: countConnections(compute.connected),
      waiting: countConnections(compute.waiting),
    },
  };
}

function setClock(options: ControlOptions, change: z.output<typeof clockBody>): Answer {
  const { settableClock, platform } = options;
  if (settableClock === undefined)
    return errorAnswer(409, 'the clock belongs to the process that started the emulator');
  if (change.now !== undefined && change.now < platform.clock.now())
    return errorAnswer(400, 'now: time runs forwards only');
  settableClock.set({ nowMs: change.now, speed: change.speed });
  const world = platform.world();
  return { status: 200, body: { now: new Date(world.nowMs).toISOString(), speed: settableClock.speed() } };
}

function mountConnections(app: Hono, clients: Clients): void {
  app.post('/computes/:id/connect', (context) =>
    withBody(context, connectBody, async ({ connections, reconnect, for_seconds: forSeconds, cu }) => {
      const forMs = forSeconds === undefined ? undefined : forSeconds * 1000;
      const arrival = { computeId: context.req.param('id'), connections, reconnects: reconnect, forMs, cu };
      return connectionsAnswer(await clients.arrive(arrival));
    }),
  );
  app.post('/computes/:id/disconnect', (context) =>
    withBody(context, disconnectBody, async ({ connections }) =>
      connectionsAnswer(await clients.leave(context.req.param('id'), connections)),
    ),
  );
}

/** The emulator's own routes, below `/_emulator`; they need no key and are not recorded. */
export function createControlRoutes(options: ControlOptions): Hono {
  const { platform, clients, requests, requestFaults, nextFaultId, seed } = options;
  const app = new Hono();
  const latencySeries = createLatencySeries(seed);
  app.get('/requests', (context) => context.json(requests.read()));
  app.delete('/requests', (context) => {
    requests.clear();
    return context.json(requests.read());
  });
  app.get('/state', (context) => context.json(reportState(platform.world(), clients)));
  app.get('/state/usage', (context) => context.json(reportUsage(platform.world())));
  app.post('/consumption', (context) =>
    withBody(context, consumptionSchema, (changes) => {
      platform.run({ kind: 'set_consumption', changes });
      return { status: 200, body: platform.world().consumption };
    }),
  );
  app.on(['GET', 'POST'], '/prometheus/api/v1/query', answerQuery(platform.world));
  app.get('/metrics', answerScrape(platform.world, latencySeries));
  app.post('/clock', (context) => withBody(context, clockBody, (change) => setClock(options, change)));
  app.route('/faults', createFaultRoutes({ platform, requestFaults, latencySeries, nextId: nextFaultId, seed }));
  app.route('/', createAccountRoutes(platform));
  mountConnections(app, clients);
  app.notFound(() => respond(errorAnswer(404, 'the emulator has no such route: see docs/emulator.md')));
  return app;
}

/** The only PromQL that is answered: the sum of one metric, in total or by compute. */
const QUERY =
  /^\s*sum\s*(by\s*\(endpoint_id\)\s*)?\(\s*neon_connection_counts\{endpoint_id=~?"([a-z0-9|-]+)"\}\s*\)\s*$/;

const PROBLEM = 'the emulator answers only sum(neon_connection_counts{endpoint_id="ID"}), also by (endpoint_id)';

/** Answers an instant query like a Prometheus that scrapes the platform: connections of awake computes. */
function answerQuery(world: () => WorldState): Handler {
  return async (context) => {
    const [, by, ids = ''] = QUERY.exec(await queryOf(context)) ?? [];
    if (ids === '') return context.json({ status: 'error', errorType: 'bad_data', error: PROBLEM }, 400);
    const { computes, nowMs } = world();
    const awake = ids.split('|').flatMap((id) => {
      const compute = computes.get(id);
      return compute === undefined || compute.state === 'idle'
        ? []
        : [{ id, count: countConnections(compute.connected) }];
    });
    const sum = awake.reduce((total, { count }) => total + count, 0);
    const series = (metric: object, value: number) => ({ metric, value: [nowMs / 1000, String(value)] });
    const all = awake.length === 0 ? [] : [series({}, sum)];
    const each = awake.map(({ id, count }) => series({ endpoint_id: id }, count));
    return context.json({ status: 'success', data: { resultType: 'vector', result: by === undefined ? all : each } });
  };
}

async function queryOf({ req }: Context): Promise<string> {
  if (req.method === 'GET') return req.query('query') ?? '';
  return new URLSearchParams(await req.text()).get('query') ?? '';
}
