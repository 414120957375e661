import { Hono } from 'hono';
import { z } from 'zod';
import type { Clients } from '../clients.ts';
import type { SettableClock } from '../clock.ts';
import { consumptionSchema } from '../load-schema.ts';
import type { Platform } from '../platform.ts';
import type { RequestFaults } from '../request-faults.ts';
import type { RequestLog } from '../request-log.ts';
import { type Answer, errorAnswer, refusalAnswer } from '../wire/answer.ts';
import { countConnections } from '../world/connections.ts';
import type { Outcome } from '../world/outcome.ts';
import { createAccountRoutes } from './accounts.ts';
import { answerQuery } from './connection-counts.ts';
import { createFaultRoutes } from './faults.ts';
import { respond, withBody } from './respond.ts';
import { reportState, reportUsage } from './state.ts';

interface ControlOptions {
  platform: Platform;
  clients: Clients;
  requests: RequestLog;
  requestFaults: RequestFaults;
  nextFaultId: () => string;
  seed: number;
  /** Absent if the time is shared with somebody else, who sets it. */
  settableClock?: SettableClock;
}

const connectBody = z.strictObject({
  connections: z.number().int().min(1).default(1),
  for_seconds: z.number().positive().optional(),
  reconnect: z.boolean().default(false),
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
  settableClock.set({
    ...(change.now === undefined ? {} : { nowMs: change.now }),
    ...(change.speed === undefined ? {} : { speed: change.speed }),
  });
  const world = platform.world();
  return { status: 200, body: { now: new Date(world.nowMs).toISOString(), speed: settableClock.speed() } };
}

function mountConnections(app: Hono, clients: Clients): void {
  app.post('/computes/:id/connect', (context) =>
    withBody(context, connectBody, async ({ connections, reconnect, for_seconds: forSeconds }) => {
      const stay = forSeconds === undefined ? {} : { forMs: forSeconds * 1000 };
      const arrival = { computeId: context.req.param('id'), connections, reconnects: reconnect, ...stay };
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
  app.post('/clock', (context) => withBody(context, clockBody, (change) => setClock(options, change)));
  app.route('/faults', createFaultRoutes({ platform, requestFaults, nextId: nextFaultId, seed }));
  app.route('/', createAccountRoutes(platform));
  mountConnections(app, clients);
  app.notFound(() => respond(errorAnswer(404, 'the emulator has no such route: see docs/emulator.md')));
  return app;
}
