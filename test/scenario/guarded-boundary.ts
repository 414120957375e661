/** A boundary at which awake computes are lowered, with or without a guard: how late, and by how many requests. */

import { createPrometheusSeries } from '../../src/adapters/connections/prometheus-series.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { startPushedPrometheus } from './pushed-prometheus.ts';

const MINUTE_MS = 60_000;
/** Prometheus takes no samples from the future. */
const FROM_MS = Date.UTC(2024, 0, 1, 17, 40);
const BOUNDARY_MS = Date.UTC(2024, 0, 1, 18);
const TO_MS = Date.UTC(2024, 0, 1, 18, 20);

const POLICIES = `version: 1
sources: { main: { from: prometheus, url: "http://127.0.0.1:9090" } }
policies:
  - name: hours
    kind: schedule
    select: { projects: ["*"], min_age: 0s }
    windows: [{ at: "08:00-18:00", size: 2 }]
    otherwise: { size: 1 }
    disruption: { lower: { when: any }, at_once: 100%, newly_discovered: act }
`;
const GUARD = `  - name: latency
    kind: guard
    select: { projects: ["*"], min_age: 0s }
    source: main
    query: sum by (service) (http_request_duration_seconds_p95)
    match: { service: "{compute_id}" }
    bad_when: "> 0.4"
`;

export interface Boundary {
  changed: number;
  requests: number;
  /** Of the last change, in milliseconds. */
  lastMs: number;
  meanMs: number;
}

export async function runBoundary(computes: number, isGuarded: boolean): Promise<Boundary> {
  const names = Array.from({ length: computes }, (_, index) => `c${index}`);
  const own = { state: 'active', suspendTimeoutSeconds: -1, minCu: 2, maxCu: 2, connections: 2 } as const;
  let nowMs = () => FROM_MS;
  const prometheus = await startPushedPrometheus(() => nowMs());
  const adapter = createPrometheusSeries({ url: prometheus.url, timeoutMs: 60_000 });
  const samples: { atMs: number; value: number }[] = [];
  for (let atMs = FROM_MS - 5 * MINUTE_MS; atMs <= TO_MS; atMs += MINUTE_MS) samples.push({ atMs, value: 0.1 });
  const labels = (name: string) => ({ __name__: 'http_request_duration_seconds_p95', service: `ep-${name}` });
  await prometheus.push(names.map((name) => ({ labels: labels(name), samples })));
  const daemon = await startSimulatedDaemon({
    fromMs: FROM_MS,
    computes: Object.fromEntries(names.map((name) => [name, { ...own, createdAtMs: 0 }])),
    policies: isGuarded ? `${POLICIES}${GUARD}` : POLICIES,
    series: adapter,
  });
  nowMs = () => daemon.clock.now();
  try {
    await daemon.clock.runTo(BOUNDARY_MS - 1);
    const before = (await daemon.platform.requests()).length;
    await daemon.clock.runTo(TO_MS);
    const writes = (await daemon.platform.writes()).map(({ at }) => Date.parse(at) - BOUNDARY_MS);
    return {
      changed: writes.length,
      requests: (await daemon.platform.requests()).length - before,
      lastMs: Math.max(...writes),
      meanMs: writes.reduce((sum, ms) => sum + ms, 0) / writes.length,
    };
  } finally {
    await daemon.close();
    await adapter.close();
    await prometheus.close();
  }
}
