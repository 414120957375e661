import { type Context, Hono } from 'hono';
import { z } from 'zod';
import type { Platform } from '../platform.ts';
import type { RequestFault, RequestFaultSpec, RequestFaults } from '../request-faults.ts';
import { parseInput } from '../wire/bodies.ts';
import { type Answer, errorAnswer } from '../wire/render.ts';
import { FAULT_OUTCOMES, OPERATION_ACTIONS, type OperationFault } from '../world/entities.ts';
import { EFFECTS, type LatencyFault, type LatencySeries } from '../world/latency.ts';
import { createRandom } from '../world/random.ts';

const hitFields = {
  seed: z.number().int().optional(),
  count: z.number().int().min(1).optional(),
  share: z.number().min(0).max(1).default(1),
};
const requestFields = {
  route: z.string().optional(),
  method: z.string().optional(),
  ...hitFields,
};

const faultBody = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('operation'),
    action: z.enum(OPERATION_ACTIONS).optional(),
    compute: z.string().optional(),
    project: z.string().optional(),
    outcome: z.enum(FAULT_OUTCOMES),
    ...hitFields,
  }),
  z.strictObject({
    kind: z.literal('metrics'),
    effect: z.enum(EFFECTS),
    compute: z.string().optional(),
    factor: z.number().positive().max(1e6).optional(),
    at: z.iso.datetime({ offset: true }).transform(Date.parse).optional(),
    for_seconds: z.number().positive().optional(),
    ...hitFields,
  }),
  z.strictObject({ kind: z.literal('latency'), ms: z.number().min(0), ...requestFields }),
  z.strictObject({
    kind: z.literal('status'),
    status: z.number().int().min(400).max(599),
    message: z.string().optional(),
    retry_after_seconds: z.number().int().min(0).optional(),
    ...requestFields,
  }),
  z.strictObject({ kind: z.literal('hang_up'), ...requestFields }),
  z.strictObject({ kind: z.literal('wrong_json'), ...requestFields }),
  z.strictObject({ kind: z.literal('stale_reads'), ms: z.number().min(0), ...requestFields }),
  z.strictObject({ kind: z.literal('duplicates'), ...requestFields }),
]);

type FaultBody = z.output<typeof faultBody>;
type OperationFaultBody = Extract<FaultBody, { kind: 'operation' }>;
type MetricsFaultBody = Extract<FaultBody, { kind: 'metrics' }>;
type RequestFaultBody = Exclude<FaultBody, OperationFaultBody | MetricsFaultBody>;

interface FaultOptions {
  platform: Platform;
  requestFaults: RequestFaults;
  latencySeries: LatencySeries;
  nextId: () => string;
  /** The seed of faults that give none. */
  seed: number;
}

function toOperationFault(body: OperationFaultBody, id: string, seed: number): OperationFault {
  const { outcome, share, action, compute: computeId, project: projectId, count: remaining } = body;
  return { id, outcome, share, random: createRandom(body.seed ?? seed), action, computeId, projectId, remaining };
}

function toRequestFault(body: RequestFaultBody, seed: number): RequestFaultSpec {
  if (body.kind !== 'status') return { ...body, seed: body.seed ?? seed };
  const { retry_after_seconds: retryAfterSeconds, ...rest } = body;
  return { ...rest, seed: body.seed ?? seed, retryAfterSeconds };
}

function renderRequestFault(fault: RequestFault): Record<string, unknown> {
  if (fault.kind !== 'status') return { ...fault };
  const { retryAfterSeconds, ...rest } = fault;
  return { ...rest, retry_after_seconds: retryAfterSeconds };
}

function renderOperationFault(fault: OperationFault): Record<string, unknown> {
  const { id, action, computeId, projectId, outcome, remaining, share } = fault;
  return { id, kind: 'operation', action, compute: computeId, project: projectId, outcome, remaining, share };
}

function toLatencyFault(body: MetricsFaultBody, { platform, nextId, seed }: FaultOptions): LatencyFault {
  const { effect, compute: computeId, factor, at: fromMs = platform.clock.now(), share, count } = body;
  const forMs = body.for_seconds === undefined ? undefined : body.for_seconds * 1000;
  return { id: nextId(), effect, computeId, factor, fromMs, forMs, share, count, seed: body.seed ?? seed };
}

function renderLatencyFault({ id, effect, computeId, factor, fromMs, forMs, share, count }: LatencyFault) {
  const at = new Date(fromMs).toISOString();
  const for_seconds = forMs === undefined ? undefined : forMs / 1000;
  return { id, kind: 'metrics', effect, compute: computeId, factor, at, for_seconds, share, count };
}

function addFault(options: FaultOptions, body: FaultBody): Answer {
  if (body.kind === 'metrics') {
    const fault = toLatencyFault(body, options);
    options.latencySeries.add(fault);
    return { status: 200, body: renderLatencyFault(fault) };
  }
  if (body.kind !== 'operation') {
    const fault = options.requestFaults.add(toRequestFault(body, options.seed));
    return { status: 200, body: renderRequestFault(fault) };
  }
  const fault = toOperationFault(body, options.nextId(), options.seed);
  options.platform.run({ kind: 'add_operation_fault', fault });
  return { status: 200, body: renderOperationFault(fault) };
}

function listFaults({ platform, requestFaults, latencySeries }: FaultOptions): Answer {
  const faults = [
    ...requestFaults.list().map(renderRequestFault),
    ...latencySeries.list().map(renderLatencyFault),
    ...platform.world().operationFaults.map(renderOperationFault),
  ];
  return { status: 200, body: { faults } };
}

function clearFaults(options: FaultOptions, id?: string): Answer {
  options.requestFaults.clear(id);
  options.latencySeries.clear(id);
  options.platform.run({ kind: 'clear_operation_faults', id });
  return listFaults(options);
}

/** `/faults`: POST adds one, GET lists, DELETE removes one or all; removing all ends hanging operations. */
export function createFaultRoutes(options: FaultOptions): Hono {
  const app = new Hono();
  app.get('/', () => respond(listFaults(options)));
  app.post('/', (context) => withBody(context, faultBody, (body) => addFault(options, body)));
  app.delete('/', () => respond(clearFaults(options)));
  app.delete('/:id', (context) => respond(clearFaults(options, context.req.param('id'))));
  return app;
}

export function respond(answer: Answer): Response {
  return Response.json(answer.body, { status: answer.status });
}

/** Parses the JSON body and answers with the result of `handle`; an empty body is `{}`. */
export async function withBody<S extends z.ZodType>(
  context: Context,
  schema: S,
  handle: (body: z.output<S>) => Answer | Promise<Answer>,
): Promise<Response> {
  const text = await context.req.text();
  let data: unknown;
  try {
    data = text === '' ? {} : JSON.parse(text);
  } catch {
    return respond(errorAnswer(400, 'the body is not JSON'));
  }
  const body = parseInput(schema, data);
  return respond(body.ok ? await handle(body.value) : errorAnswer(400, body.message));
}
