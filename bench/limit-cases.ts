/** What else is measured at a boundary under the rate limit, besides the size of the fleet. */
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { RateLimits } from '../src/domain/rate-budget/limits.ts';
import { percentile } from './figures.ts';
import { KEY, type Seen, type Stage } from './fleet-stage.ts';

export interface Case {
  name: string;
  projects: number;
  computesEach?: number;
  state?: 'idle' | 'active';
  accounts?: number;
  /** 2 by default. */
  daemons?: number;
  /** How many other computes of an account are changed once before, from which daemons learn what its list shows. */
  warmUp?: number;
  /** More arguments of the emulator. */
  emulator?: readonly string[];
  /** Of the policy, as YAML; raises at any time by default. */
  disruption?: string;
  /** Boundaries one after the other, 1 by default. */
  boundaries?: number;
  /** Requests that each change needs, 1 by default. */
  requestsEach?: number;
  /** The last PATCH of so many changes, in seconds, where not the documented limits say it. */
  boundS?: (changes: number, limits: RateLimits) => number;
  /** What happens beside the daemons, from their start until it is aborted; what there is to say of it. */
  beside?: (stage: Stage, boundaryMs: number, signal: AbortSignal) => Promise<string>;
}

/** Changes of one herd, where a case does not need another number. */
const HERD = 500;
const PER_MINUTE = 700;

/** Computes that wake shortly before the instant. */
const WOKEN = 50;
const WAKES_FROM_MS = 120_000;
const WAKES_UNTIL_MS = 1_000;

/** The list shows whole seconds, so a change is surely in one that was asked for so long after it. */
const SHOWN_MS = 2_000;

export const CASES: Readonly<Record<string, Case>> = {
  other: { name: 'another client', projects: HERD, beside: anotherClient },
  strict: {
    name: 'stricter service',
    projects: HERD,
    emulator: ['--limit-kind', 'bucket'],
    boundaries: 2,
    boundS: (changes, { perMinute, perRouteSecond }) => ((changes - perRouteSecond) * 60) / perMinute,
  },
  latency300: { name: '300 ms latency', projects: HERD, beside: latency(300) },
  latency1000: { name: '1 s latency', projects: HERD, beside: latency(1_000) },
  woken: { name: 'woken before', projects: HERD, disruption: '{ raise: { when: idle } }', beside: wakeSome },
  wakes: { name: 'PATCH wakes', projects: HERD, emulator: ['--idle-patch', 'wakes'] },
  active: {
    ...{ name: 'active, 5 a project', projects: 100, computesEach: 5, state: 'active' },
    disruption: '{ raise: { when: any }, at_once: 100% }',
  },
  at_once: {
    ...{ name: 'active, 10% at once', projects: 200, state: 'active' },
    disruption: '{ raise: { when: any }, at_once: 10% }',
  },
  killed: {
    ...{ name: 'active, one of three daemons killed', projects: 200, state: 'active', daemons: 3 },
    ...{ disruption: '{ raise: { when: any }, at_once: 100% }', beside: killOne },
  },
  unknown: { name: 'an account that ebb never changed', projects: HERD, warmUp: 0, requestsEach: 2 },
  accounts: { name: 'five accounts', projects: 5 * HERD, accounts: 5 },
};

/** 5 % of the limit, all the time. */
async function anotherClient({ apiUrl }: Stage, _boundaryMs: number, signal: AbortSignal): Promise<string> {
  let sent = 0;
  let refused = 0;
  while (!signal.aborted) {
    const headers = { authorization: `Bearer ${KEY}` };
    const { statusCode, body } = await request(`${apiUrl}/users/me`, { headers });
    await body.dump();
    sent += 1;
    if (statusCode === 429) refused += 1;
    await pause((60_000 * 20) / PER_MINUTE, signal);
  }
  return `the other: ${sent} requests, ${refused} × 429`;
}

function latency(ms: number): NonNullable<Case['beside']> {
  return async ({ platformUrl }) => {
    await control(platformUrl, 'faults', { kind: 'latency', ms });
    return '';
  };
}

/** SIGKILL to a daemon at the instant; how late the others then made the changes. */
async function killOne(stage: Stage, boundaryMs: number, signal: AbortSignal): Promise<string> {
  await pause(boundaryMs - Date.now(), signal);
  stage.daemons.at(-1)?.kill('SIGKILL');
  await pause(3_600_000, signal);
  const requests = await stage.requests();
  const changed = new Map<string, number>();
  for (const { method, status, path, atMs } of requests) {
    const isChange = method === 'PATCH' && status === 200 && path.includes('/p-bench-') && atMs >= boundaryMs;
    if (isChange && !changed.has(path)) changed.set(path, (atMs - boundaryMs) / 1000);
  }
  const late = [...changed.values()];
  const [p95, p99, last] = [percentile(late, 0.95), percentile(late, 0.99), Math.max(...late)].map((s) => s.toFixed(1));
  return `${late.length} changed, p95 ${p95} s, p99 ${p99} s, last ${last} s`;
}

/** Clients come to some computes before the instant. Those that the last list showed must not be dropped. */
async function wakeSome(stage: Stage, boundaryMs: number, signal: AbortSignal): Promise<string> {
  const wokenAtMs = new Map<string, number>();
  for (let index = 0; index < WOKEN; index += 1) {
    const share = index / (WOKEN - 1);
    const atMs = boundaryMs - WAKES_FROM_MS + share * (WAKES_FROM_MS - WAKES_UNTIL_MS);
    await pause(atMs - Date.now(), signal);
    const computeId = `ep-bench-${index * 10}-0`;
    wokenAtMs.set(computeId, Date.now());
    await control(stage.platformUrl, `computes/${computeId}/connect`, { connections: 1, for_seconds: 600 });
  }
  await pause(3_600_000, signal);
  const dropped = await droppedOf(stage.platformUrl);
  const requests = await stage.requests();
  const shown = dropped.filter((computeId) => wasShown(requests, computeId, wokenAtMs.get(computeId) ?? 0));
  return `${WOKEN} woken, ${dropped.length} dropped, ${shown.length} of them shown by a list`;
}

function wasShown(requests: readonly Seen[], computeId: string, wokenAtMs: number): boolean {
  const patch = requests.find(({ method, path }) => method === 'PATCH' && path.endsWith(`/${computeId}`));
  const lists = requests.filter(({ path }) => /\/projects(\?|$)/.test(path));
  return lists.some(({ atMs }) => atMs > wokenAtMs + SHOWN_MS && atMs < (patch?.atMs ?? 0));
}

async function droppedOf(platformUrl: string): Promise<string[]> {
  const { body } = await request(`${platformUrl}/_emulator/state`);
  const { computes } = (await body.json()) as { computes: { compute_id: string; connections_dropped: number }[] };
  return computes.filter((compute) => compute.connections_dropped > 0).map((compute) => compute.compute_id);
}

async function control(platformUrl: string, route: string, body: object): Promise<void> {
  const answer = await request(`${platformUrl}/_emulator/${route}`, { method: 'POST', body: JSON.stringify(body) });
  await answer.body.dump();
  if (answer.statusCode >= 300) throw new Error(`${route} answered ${answer.statusCode}`);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {});
}
