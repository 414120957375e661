/** Scrapes the emulator's response times of a guarded fleet. */

import { BUCKETS, type LatencySeries, type Served } from '../../src/emulator/world/latency.ts';
import type { FleetOptions, Member } from './guarded-fleet.ts';
import type { PushedSeries } from './pushed-prometheus.ts';

const DAY_MS = 86_400_000;

/** What the members serve now. */
export function servedBy({ compute, options, startedAtMs }: Member, nowMs: number): Served {
  const awakeMs = compute.state === 'active' ? Math.max(0, nowMs - startedAtMs) : undefined;
  const { refillMs } = options;
  return {
    ...{ computeId: compute.computeId, demandCu: options.demandAt(nowMs), sizeCu: compute.maxCu, awakeMs },
    ...(refillMs !== undefined && { refillMs }),
  };
}

/** Scrapes the emulator's response times, and keeps them until they are sent. */
export function createScraper({ keeps, isScraped }: Pick<FleetOptions, 'keeps' | 'isScraped'>, latency: LatencySeries) {
  const series = new Map<string, PushedSeries>();
  let oldestMs = Number.POSITIVE_INFINITY;
  const add = (labels: Record<string, string>, atMs: number, value: number) => {
    const key = Object.values(labels).join(' ');
    const known = series.get(key) ?? { labels, samples: [] };
    series.set(key, known);
    known.samples.push({ atMs, value });
  };
  return {
    scrape(members: readonly Member[], nowMs: number) {
      oldestMs = Math.min(oldestMs, nowMs);
      const dayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
      const scraped = members.filter(({ options }) => isScraped?.(options.name, dayMs) ?? true);
      const served = scraped.map((member) => servedBy(member, nowMs));
      for (const { computeId, counts, seconds } of latency.scrape(served, nowMs)) {
        const service = computeId.slice('ep-'.length);
        const name = (part: string) => `http_request_duration_seconds_${part}`;
        if (keeps === 'mean') {
          add({ __name__: name('sum'), service }, nowMs, seconds);
          add({ __name__: name('count'), service }, nowMs, counts.at(-1) ?? 0);
          continue;
        }
        for (const [index, limit] of BUCKETS.entries()) {
          const le = Number.isFinite(limit) ? String(limit) : '+Inf';
          add({ __name__: name('bucket'), le, service }, nowMs, counts[index] ?? 0);
        }
      }
    },
    forget(beforeMs: number) {
      for (const { samples } of series.values()) while ((samples[0]?.atMs ?? beforeMs) < beforeMs) samples.shift();
      oldestMs = Math.max(oldestMs, beforeMs);
    },
    async flush(push: (all: Iterable<PushedSeries>) => Promise<void>, nowMs: number, longestMs: number) {
      if (nowMs - oldestMs < longestMs || series.size === 0) return;
      await push(series.values());
      series.clear();
      oldestMs = Number.POSITIVE_INFINITY;
    },
  };
}
