/** The way of one daemon to the platform, with the troubles of a network and of a service. */

import type { Exchange, Transport, WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import type { ComputeSettings } from '../../src/domain/compute/compute.ts';
import { computeNow } from './book.ts';
import { latencyMs, type SimDaemon } from './daemon.ts';
import { see } from './outcome.ts';
import type { Dice, FaultKind } from './plan.ts';
import { noteUnclear } from './records.ts';
import { noteForbidden } from './refusals.ts';
import { noteRequest } from './thrift.ts';
import type { World } from './world.ts';
import { checkArrival, noteAnswer, noteArrived, noteEffect, noteSent } from './writes.ts';

/** Requests are counted in so many milliseconds. */
const REQUESTS_MS = 10_000;

export function transportOf(world: World, daemon: SimDaemon): Transport {
  return async (request, signal) => {
    const { method } = request;
    world.reach(`port api.${method} ${routeOf(request)}`);
    see(world, 'requests', `${method} ${routeOf(request)}`, REQUESTS_MS);
    noteRequest(world, request);
    if (method !== 'GET') noteSent(world, daemon, request);
    await delay(world, daemon, request, signal);
    if (signal.aborted) return silence(world, daemon, request, signal);
    const refused = refusalOf(world, request);
    if (refused) return answered(world, request, refused);
    if (isLostOnTheWay(world, daemon, request)) return silence(world, daemon, request, signal);
    const exchange = await (method === 'GET' ? arrive(world, request) : write(world, daemon, request));
    await delay(world, daemon, request, signal);
    noteAnswer(world, request);
    return answerOf(world, daemon, { request, exchange, signal });
  };
}

function answerOf(
  world: World,
  daemon: SimDaemon,
  { request, exchange, signal }: { request: WireRequest; exchange: Exchange; signal: AbortSignal },
): Exchange | Promise<Exchange> {
  if (exchange.kind !== 'answer' || exchange.status !== 200) noteUnclear(world, placeOf(request)?.computeId);
  if (isLost(world, request, 'api_unanswered', request.method === 'GET' ? 0.2 : 0.7) || signal.aborted)
    return silence(world, daemon, request, signal);
  return without(exchange, world.faultsAt('api_hides_project')?.projectId);
}

function answered(world: World, request: WireRequest, exchange: Exchange & { kind: 'answer' }): Exchange {
  if (exchange.status === 403) noteForbidden(world, request);
  noteArrived(world, request);
  noteUnclear(world, placeOf(request)?.computeId);
  return exchange;
}

/** That a compute wakes, or goes to sleep, is known within this time, in milliseconds. */
const STATE_KNOWN_MS = 150_000;

/** The longest way of a request, in milliseconds: longer than ebb waits for its effect. */
const LATEST_MS = 40_000;

/** True if it never arrives, or when nobody waits for its answer any more. */
function isLostOnTheWay(world: World, daemon: SimDaemon, request: WireRequest): boolean {
  if (isLost(world, request, 'api_lost', 0.5)) return true;
  const isLate = request.method !== 'GET' && isLost(world, request, 'api_late', 0.7);
  if (isLate) takeEffectLate(world, daemon, request);
  return isLate;
}

function takeEffectLate(world: World, daemon: SimDaemon, request: WireRequest): void {
  const { time } = world;
  time.at(time.now() + diceOf(world, request).between(3_000, LATEST_MS), () => {
    world.note(`d${daemon.index} late:`);
    void write(world, daemon, request, { isLate: true });
  });
}

function isLost(world: World, request: WireRequest, kind: FaultKind, chance: number): boolean {
  return world.faultsAt(kind) !== undefined && diceOf(world, request).is(chance);
}

function diceOf(world: World, request: WireRequest): Dice {
  return world.diceFor(nameOf(request));
}

function nameOf({ method, path }: WireRequest): string {
  return `${method} ${path}`;
}

function routeOf({ path }: WireRequest): string {
  return path.replaceAll(/(project|ep|br)-[0-9a-z-]+/g, '{id}').replace(/\?.*/, '');
}

/** The way of a request, or of its answer. */
async function delay(world: World, { life }: SimDaemon, request: WireRequest, signal: AbortSignal): Promise<void> {
  await life.pass(latencyMs(world, nameOf(request), world.faultsAt('api_slow')?.by), signal).catch(() => {});
}

/** Nothing comes until the caller gives up. */
async function silence(
  world: World,
  { life }: SimDaemon,
  request: WireRequest,
  signal: AbortSignal,
): Promise<Exchange> {
  noteUnclear(world, placeOf(request)?.computeId);
  while (!signal.aborted) await life.pass(1_000, signal).catch(() => {});
  return { kind: 'failure', code: 'timeout', mayHaveArrived: true, message: 'no answer: the deadline has passed' };
}

/** The answer of a platform in trouble, which has done nothing. */
function refusalOf(world: World, request: WireRequest): (Exchange & { kind: 'answer' }) | undefined {
  const { method, path } = request;
  const isAbout = (kind: FaultKind) => {
    const fault = world.faultsAt(kind);
    return fault && path.startsWith(`/projects/${fault.projectId}`) ? fault : undefined;
  };
  if (world.faultsAt('api_down')) return refusal(500, 'the platform is down');
  if (world.faultsAt('api_throttled') && diceOf(world, request).is(0.7))
    return { ...refusal(429, 'too many requests'), retryAfter: '2' };
  if (isAbout('api_hides_project')) return refusal(404, 'project not found');
  const refused = isAbout('api_refuses');
  // All requests, or only changes.
  if (!refused || (refused.by < 0.7 && method === 'GET')) return undefined;
  return refusal(Math.floor(refused.by * 10) % 2 === 0 ? 423 : 403, 'not now');
}

async function write(
  world: World,
  daemon: SimDaemon,
  request: WireRequest,
  { isLate = false } = {},
): Promise<Exchange> {
  if (!isLate) checkArrival(world, daemon, request);
  noteArrived(world, request, { isLate });
  const before = settingsAt(world, request);
  const wasAwake = isAwake(world, request);
  const exchange = await arrive(world, request);
  const status = exchange.kind === 'answer' ? exchange.status : exchange.code;
  noteEffect(world, request, { before, isDone: status === 200, wasAwake });
  const arrived = `${request.method} ${request.path} ${request.body ?? ''} arrives -> ${status}`;
  world.note(`d${daemon.index} ${arrived}`);
  see(world, 'writes', arrived);
  if (before && world.faultsAt('api_not_applied') && diceOf(world, request).is(0.5)) putBack(world, request, before);
  return exchange;
}

/** If a compute is awake; undefined if it has been so, or asleep, for too short a time to be known. */
function isAwake(world: World, request: WireRequest): boolean | undefined {
  const compute = computeNow(world, placeOf(request)?.computeId ?? '');
  const sinceMs = Math.max(compute?.startedAtMs ?? 0, compute?.suspendedAtMs ?? 0);
  if (!compute || sinceMs > world.time.now() - STATE_KNOWN_MS) return undefined;
  return compute.state === 'active';
}

async function arrive(world: World, request: WireRequest): Promise<Exchange> {
  const { requestId } = request;
  world.pending += 1;
  try {
    const { status, headers, text } = await world.platform.answer(request);
    const retryAfter = headers['retry-after'];
    return { kind: 'answer', status, text, requestId, ...(retryAfter !== undefined && { retryAfter }) };
  } finally {
    world.pending -= 1;
  }
}

function refusal(status: number, message: string): Exchange & { kind: 'answer' } {
  return { kind: 'answer', status, text: JSON.stringify({ code: '', message }) };
}

/** A list of projects that lacks one. */
function without(exchange: Exchange, projectId: string | undefined): Exchange {
  if (projectId === undefined) return exchange;
  if (exchange.kind !== 'answer' || exchange.status !== 200) return exchange;
  const body = JSON.parse(exchange.text) as { projects?: { id: string }[] };
  if (!body.projects) return exchange;
  return {
    ...exchange,
    text: JSON.stringify({ ...body, projects: body.projects.filter(({ id }) => id !== projectId) }),
  };
}

const PATCH = /^\/projects\/([a-z0-9-]+)\/endpoints\/([a-z0-9-]+)$/;

export function placeOf({ path }: WireRequest): { projectId: string; computeId: string } | undefined {
  const [, project, compute] = PATCH.exec(path.replace(/\/restart$/, '')) ?? [];
  return project === undefined || compute === undefined ? undefined : { projectId: project, computeId: compute };
}

export function settingsAt(world: World, request: WireRequest): ComputeSettings | undefined {
  const place = placeOf(request);
  const compute = place && world.platform.platform.world().computes.get(place.computeId);
  return (
    compute && { minCu: compute.minCu, maxCu: compute.maxCu, suspendTimeoutSeconds: compute.suspendTimeoutSeconds }
  );
}

/** The service said yes, and has forgotten it. */
function putBack(world: World, request: WireRequest, before: ComputeSettings): void {
  const place = placeOf(request);
  if (!place || request.method !== 'PATCH') return;
  world.note(`the platform forgets the change of ${place.computeId}`);
  world.platform.platform.run({ kind: 'update_compute', ...place, changes: before });
  const { minCu, maxCu, suspendTimeoutSeconds } = before;
  const values = { size: [minCu, maxCu] as const, suspendSeconds: suspendTimeoutSeconds };
  world.people.changes.push({ atMs: world.time.now(), computeId: place.computeId, values });
}
