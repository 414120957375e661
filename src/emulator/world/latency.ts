/** Simulated response times of requests to computes, counted in a histogram for each compute. */

import { createRandom, hashText, nextRandom, type RandomState } from './random.ts';

/** The service time of a request on an idle compute with a warm cache. */
const SERVICE_SECONDS = 0.02;

/** A queue grows without limit as its utilization comes near 1. Here clients are assumed to give up before that. */
const MAX_UTILIZATION = 0.98;

/** The extra service time right after a start, as a multiple of the usual time. It falls to about a third in {@link REFILL_MS}. */
const COLD_EXTRA = 4;
const REFILL_MS = 60_000;

const REQUESTS_PER_CU_SECOND = 10;

/** The buckets of common client libraries, in seconds. */
export const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, Number.POSITIVE_INFINITY] as const;

export interface Served {
  computeId: string;
  /** The size that the current requests need, in CU; 0: there are no requests. */
  demandCu: number;
  /** The largest size that the compute may have, in CU. */
  sizeCu: number;
  /** Milliseconds since the compute was started; undefined: it sleeps, and serves nothing. */
  awakeMs: number | undefined;
  /** The time in which its cache fills to about two thirds, in milliseconds; a minute if absent. */
  refillMs?: number;
}

/**
 * The mean response time in seconds, that of an M/M/1 queue: service time / (1 − utilization), where utilization is demand over size, at
 * most 0.98 (L. Kleinrock, Queueing Systems, volume 1, 1975). A cold cache makes the service time up to five times as long.
 */
export function responseSeconds({ demandCu, sizeCu, awakeMs = 0, refillMs = REFILL_MS }: Served): number {
  const utilization = Math.min(MAX_UTILIZATION, demandCu / sizeCu);
  return (SERVICE_SECONDS * (1 + COLD_EXTRA * Math.exp(-awakeMs / refillMs))) / (1 - utilization);
}

export const EFFECTS = ['noise', 'gaps', 'resets', 'outage', 'deploy'] as const;
type Effect = (typeof EFFECTS)[number];

/** The usual factor of response times, and how long it lasts. */
const USUAL: Record<Effect, { factor: number; forMs: number }> = {
  noise: { factor: 1.5, forMs: Number.POSITIVE_INFINITY },
  gaps: { factor: 1, forMs: Number.POSITIVE_INFINITY },
  resets: { factor: 1, forMs: Number.POSITIVE_INFINITY },
  outage: { factor: 20, forMs: Number.POSITIVE_INFINITY },
  deploy: { factor: 5, forMs: 120_000 },
};

/** A fault of the response times, or of how they are measured. Instants are milliseconds since the epoch. */
export interface LatencyFault {
  id: string;
  effect: Effect;
  /** Absent: all computes. */
  computeId?: string | undefined;
  /** Response times are multiplied by this factor. With noise, they are multiplied or divided by at most this factor. Absent: {@link USUAL}. */
  factor?: number | undefined;
  fromMs: number;
  /** Absent: 2 minutes for a deploy; no end for the others. */
  forMs?: number | undefined;
  /** The share of computes that the fault affects at each scrape, 0..1. */
  share: number;
  /** How many times the fault takes effect. Each scrape of each compute counts. Absent: always. */
  count?: number | undefined;
  seed: number;
}

/** The histogram of one compute. */
export interface Counted {
  computeId: string;
  /** For each of {@link BUCKETS}, the number of requests that took at most this long; the last is the number of all. */
  counts: readonly number[];
  /** The sum of the response times. */
  seconds: number;
}

export interface LatencySeries {
  add(fault: LatencyFault): void;
  list(): LatencyFault[];
  /** Without an id: all. */
  clear(id?: string): void;
  /** Counts the requests since the last scrape, for which the present demand is assumed, and returns all histograms. */
  scrape(computes: Iterable<Served>, nowMs: number): Counted[];
}

interface Counter {
  atMs: number;
  counts: number[];
  seconds: number;
  random: RandomState;
}

interface ActiveFault {
  fault: LatencyFault;
  random: RandomState;
  hits: number;
  /** The computes whose counters a deploy has reset. */
  deployed: Set<string>;
}

export function createLatencySeries(seed: number): LatencySeries {
  const counters = new Map<string, Counter>();
  let faults: ActiveFault[] = [];

  function counterOf(computeId: string, nowMs: number): Counter {
    const known = counters.get(computeId);
    if (known) return known;
    const counter = { atMs: nowMs, ...noCounts(), random: createRandom(hashText(computeId, seed)) };
    counters.set(computeId, counter);
    return counter;
  }

  return {
    add: (fault) => void faults.push({ fault, random: createRandom(fault.seed), hits: 0, deployed: new Set() }),
    list: () => faults.map(({ fault }) => fault),
    clear(id) {
      faults = faults.filter(({ fault }) => id !== undefined && fault.id !== id);
    },
    scrape(computes, nowMs) {
      const due = faults.filter(({ fault }) => isDue(fault, nowMs));
      const counted: Counted[] = [];
      for (const served of computes) {
        const counter = counterOf(served.computeId, nowMs);
        const hits = due.filter((active) => takeHit(active, served.computeId));
        const isReset = hits.some((active) => takeReset(active, served.computeId));
        if (isReset) Object.assign(counter, noCounts());
        count(counter, served, { nowMs, factor: factorOf(hits, counter.random) });
        const { counts, seconds } = counter;
        if (hits.some(({ fault }) => fault.effect === 'gaps')) continue;
        counted.push({ computeId: served.computeId, counts: [...counts], seconds });
      }
      return counted;
    },
  };
}

function noCounts() {
  return { counts: BUCKETS.map(() => 0), seconds: 0 };
}

function isDue({ effect, fromMs, forMs = USUAL[effect].forMs }: LatencyFault, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < fromMs + forMs;
}

/** True if a fault affects a compute at this scrape. Counts the hit. */
function takeHit(active: ActiveFault, computeId: string): boolean {
  const { fault, random, hits } = active;
  if (fault.computeId !== undefined && fault.computeId !== computeId) return false;
  if (fault.count !== undefined && hits >= fault.count) return false;
  if (nextRandom(random) >= fault.share) return false;
  active.hits += 1;
  return true;
}

/** True if a fault resets the counters of a compute; a deploy does so once for each compute. */
function takeReset({ fault, deployed }: ActiveFault, computeId: string): boolean {
  if (fault.effect !== 'deploy') return fault.effect === 'resets';
  if (deployed.has(computeId)) return false;
  deployed.add(computeId);
  return true;
}

function factorOf(hits: readonly ActiveFault[], random: RandomState): number {
  return hits.reduce((product, { fault: { effect, factor = USUAL[effect].factor } }) => {
    return product * (effect === 'noise' ? factor ** (2 * nextRandom(random) - 1) : factor);
  }, 1);
}

/** Adds the expected number of requests to each bucket: response times of an M/M/1 queue are distributed exponentially. */
function count(counter: Counter, served: Served, { nowMs, factor }: { nowMs: number; factor: number }): void {
  const passedMs = Math.min(nowMs - counter.atMs, served.awakeMs ?? 0);
  counter.atMs = nowMs;
  const requests = Math.round((passedMs / 1000) * served.demandCu * REQUESTS_PER_CU_SECOND);
  if (requests <= 0) return;
  const mean = responseSeconds(served) * factor;
  for (const [index, limit] of BUCKETS.entries()) {
    counter.counts[index] = (counter.counts[index] ?? 0) + Math.round(requests * (1 - Math.exp(-limit / mean)));
  }
  counter.seconds += requests * mean;
}
