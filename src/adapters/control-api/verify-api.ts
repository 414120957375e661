import { z } from 'zod';
import type { SentRequest, VerifyApi } from '../../ports/verify.ts';
import { malformed } from './answers.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import { controlApiOver, withDaemonGuard } from './control-api.ts';
import type { Exchange, Transport, WireRequest } from './http-transport.ts';
import { apiCall, ask, type Request } from './requests.ts';
import { PROJECT } from './routes.ts';
import { Instant } from './wire.ts';

interface VerifyBounds {
  projectId: string;
  minutes: number;
  requests: number;
  /** How much of the minutes and requests is reserved for putting settings back. */
  reserveMinutes: number;
  reserveRequests: number;
}

const ProjectFacts = z.object({
  project: z.object({
    id: z.string(),
    name: z.string(),
    created_at: Instant,
    synthetic_storage_size: z.number().nullish(),
  }),
});

/**
 * The control API for `ebb verify`. Invariant: it sends only what a daemon may send, writes to one project only, and keeps within its bounds.
 */
export function createVerifyApi(options: ControlApiOptions & { bounds: VerifyBounds }): VerifyApi {
  const { clock, bounds } = options;
  const account = options.accounts[0]?.name ?? 'default';
  const { guard, sent, limits, releaseReserve } = createBound(bounds, options);
  const { call, accounts, close } = createCaller(options, (send) => withDaemonGuard(guard(send)));
  return {
    ...controlApiOver({ call, accounts, clock }),
    sent,
    limits,
    releaseReserve,
    close,
    async project(callOptions = {}) {
      const request: Request = { account, method: 'GET', template: PROJECT, ids: { project_id: bounds.projectId } };
      const answer = await ask(call, request, ProjectFacts, callOptions);
      if (!answer.ok) return answer;
      const { id, name, created_at: createdAtMs, synthetic_storage_size: bytes } = answer.value.project;
      if (id !== bounds.projectId)
        return malformed(apiCall(request, callOptions), 'the answer is about another project');
      return { ok: true, value: { name, createdAtMs, branchBytes: bytes ?? 0 } };
    },
  };
}

/** Different values of the rate limit header that are kept. */
const MAX_RATE_LIMITS = 20;

/** A guard that enforces the bounds, and a record of what it lets pass. */
function createBound(
  { projectId, minutes, requests, reserveMinutes, reserveRequests }: VerifyBounds,
  { clock }: Pick<ControlApiOptions, 'clock'>,
) {
  const startedMs = clock.monotonicMs();
  const sent: SentRequest[] = [];
  const rateLimits = new Set<string>();
  let isReserved = true;
  let answers = 0;
  let withLimit = 0;

  function refusalOf({ method, path }: WireRequest): string | undefined {
    const isWrite = method !== 'GET';
    if (isWrite && !path.startsWith(`/projects/${projectId}/`)) return `not sent: only ${projectId} may be written to`;
    const maxRequests = isReserved ? requests - reserveRequests : requests;
    const maxMinutes = isReserved ? minutes - reserveMinutes : minutes;
    const isOver = sent.length >= maxRequests || clock.monotonicMs() - startedMs >= maxMinutes * 60_000;
    return isOver ? `the bounds of ${minutes} minutes and ${requests} requests were reached` : undefined;
  }

  function note(request: WireRequest, exchange: Exchange): void {
    const route = `${request.method} ${templateOf(request.path)}`;
    sent.push({ atMs: clock.now(), route, ...(exchange.kind === 'answer' && { status: exchange.status }) });
    if (exchange.kind !== 'answer') return;
    answers += 1;
    if (exchange.rateLimit === undefined) return;
    withLimit += 1;
    if (rateLimits.size < MAX_RATE_LIMITS) rateLimits.add(exchange.rateLimit);
  }

  const guard =
    (send: Transport): Transport =>
    async (request, signal) => {
      const message = refusalOf(request);
      if (message !== undefined) return { kind: 'failure', code: 'forbidden', mayHaveArrived: false, message };
      const exchange = await send(request, signal);
      note(request, exchange);
      return exchange;
    };
  return {
    guard,
    sent: () => sent,
    limits: () => ({ answers, withLimit, values: [...rateLimits] }),
    releaseReserve() {
      isReserved = false;
    },
  };
}

/** The path without ids and query. */
function templateOf(path: string): string {
  return path
    .replace(/\?.*$/, '')
    .replace(/^\/projects\/[^/]+/, PROJECT)
    .replace(/\/endpoints\/[^/]+/, '/endpoints/{endpoint_id}');
}
