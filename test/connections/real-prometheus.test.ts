/** A real Prometheus that scrapes an exporter of the test's own. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPrometheusCounter } from '../../src/adapters/connections/prometheus.ts';
import { createPrometheusHistory } from '../../src/adapters/connections/prometheus-range.ts';
import { createPrometheusSeries } from '../../src/adapters/connections/prometheus-series.ts';
import { createGuardAsker } from '../../src/app/guards/ask.ts';
import { startEmulator } from '../../src/emulator/server.ts';
import { compute, fleetOf } from '../emulator/support.ts';
import { aCompute, aGuard } from '../support/builders.ts';
import { endServer, freePort, startServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { programPath } from '../support/programs.ts';
import { describeWith } from '../support/requirements.ts';

/** Only its name is asked for. */
const PROMETHEUS = {
  name: 'main',
  file: 'ebb.yaml',
  from: 'prometheus',
  url: 'http://unused',
  everyMs: 60_000,
} as const;

const NEVER = new AbortController().signal;
const undo: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A compute of the emulator whose clients need 0.9 CU, long awake. */
const served = (fields: { id: string; maxCu: number }) =>
  compute({
    ...{ state: 'active', suspendTimeoutSeconds: -1, createdAtMs: 0, load: [{ class: 'replication', cu: 0.9 }] },
    ...fields,
  });

describeWith('prometheus', 'a real Prometheus as source of connection counts', () => {
  let url = '';

  beforeAll(async () => {
    const shop = fleetOf(served({ id: 'ep-small', maxCu: 1 }), served({ id: 'ep-large', maxCu: 8 }));
    const emulator = await startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet: shop });
    undo.push(() => emulator.close());
    const exporter = createServer((_request, response) => {
      const series = (id: string, state: string, value: string) =>
        `neon_connection_counts{endpoint_id="${id}",datname="shop",state="${state}"} ${value}\n`;
      const counts = [series('ep-a', 'active', '30'), series('ep-a', 'idle', '60'), series('ep-b', 'idle', '2')];
      response.setHeader('content-type', 'text/plain; version=0.0.4');
      response.end([...counts, series('ep-nan', 'idle', 'NaN')].join(''));
    }).listen(0, '127.0.0.1');
    await once(exporter, 'listening');
    undo.push(async () => {
      exporter.closeAllConnections();
      exporter.close();
    });
    const target = `127.0.0.1:${(exporter.address() as AddressInfo).port}`;
    const folder = await mkdtemp(join(tmpdir(), 'ebb-prometheus-'));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    const job = { job_name: 'own', scrape_interval: '200ms', scrape_timeout: '200ms' };
    const emulated = { ...job, job_name: 'emulator', metrics_path: '/_emulator/metrics' };
    const targetsOf = (address: string) => [{ targets: [address] }];
    const scrape_configs = [
      { ...job, static_configs: targetsOf(target) },
      { ...emulated, static_configs: targetsOf(new URL(emulator.origin).host) },
    ];
    const config = { scrape_configs };
    await writeFile(join(folder, 'prometheus.json'), JSON.stringify(config));
    const port = await freePort();
    const args = [`--config.file=${join(folder, 'prometheus.json')}`, `--storage.tsdb.path=${join(folder, 'data')}`];
    const listen = `--web.listen-address=127.0.0.1:${port}`;
    const child = await startServer(programPath('prometheus'), [...args, listen], /ready to receive web requests/);
    undo.push(() => endServer(child, 'SIGKILL'));
    url = `http://127.0.0.1:${port}`;
  }, 60_000);

  async function count(query: string, ...computeIds: string[]) {
    const counter = createPrometheusCounter({ url, query });
    const requests = computeIds.map((computeId) => ({ compute: aCompute({ computeId }) }));
    const outcomes = await counter.count(requests, NEVER);
    await counter.close();
    return [...outcomes.values()].map((outcome) => {
      if (!outcome.ok) return outcome.error.code;
      return outcome.value === 'full' ? 'full' : outcome.value.connections;
    });
  }

  it('counts many computes with one query, and says which have no count', async () => {
    const sum = 'sum(neon_connection_counts{endpoint_id="$compute"})';
    const ids = ['ep-a', 'ep-b', 'ep-nan', 'ep-unknown'];
    await eventually(() => count(sum, ...ids)).toEqual([90, 2, 'no_data', 'no_data']);
  });

  it('remembers what was counted, without what was NaN', async () => {
    const history = createPrometheusHistory({ url, query: 'sum(neon_connection_counts{endpoint_id="$compute"})' });
    const ofLastMinute = async (computeId: string) => {
      const toMs = Math.floor(Date.now() / 1000) * 1000;
      const read = await history.counts(aCompute({ computeId }), { fromMs: toMs - 60_000, toMs, stepMs: 1_000 });
      return read.ok ? read.value : read.error.code;
    };
    await eventually(() => ofLastMinute('ep-a')).toContainEqual({ atMs: expect.any(Number), connections: 90 });
    expect([await ofLastMinute('ep-nan'), await ofLastMinute('ep-unknown')]).toEqual([[], []]);
    await history.close();
  });

  it('counts by any other query one by one, and says what is wrong with it', async () => {
    const atMost = 'max_over_time(sum(neon_connection_counts{endpoint_id="$compute"})[1m:1s])';
    await eventually(() => count(atMost, 'ep-a', 'ep-b')).toEqual([90, 2]);
    expect(await count('neon_connection_counts{endpoint_id="$compute"}', 'ep-a')).toEqual(['malformed']);
    expect(await count('sum(neon_connection_counts{endpoint_id="$compute"', 'ep-a')).toEqual(['misconfigured']);
  });

  it('answers a guard: by a limit, relative to what was before, and by an alert', async () => {
    const series = createPrometheusSeries({ url });
    const asker = createGuardAsker({ of: () => series, close: () => series.close() });
    const verdicts = async (fields: Parameters<typeof aGuard>[0]) => {
      const guard = aGuard({ match: { endpoint_id: '{compute_id}' }, ...fields });
      const computes = ['ep-a', 'ep-b', 'ep-nan'].map((computeId) => aCompute({ computeId }));
      const answer = await asker.ask({ guard, source: PROMETHEUS, computes, nowMs: Date.now(), signal: NEVER });
      return answer.error?.code ?? [...answer.verdicts.values()].map(({ state }) => state);
    };
    const query = 'sum by (endpoint_id) (neon_connection_counts)';
    const above = (limit: number, relative: boolean) => ({ side: 'above', limit, relative }) as const;
    await eventually(() => verdicts({ query, badWhen: above(50, false) })).toEqual(['bad', 'healthy', 'unknown']);
    // Before the exporter was there, each of them had this value.
    const before = ['ep-a', 'ep-b'].map((id) => `label_replace(vector(40), "endpoint_id", "${id}", "", "")`);
    const withPast = { query: `${query} or ${before.join(' or ')}`, badWhen: above(1.5, true) };
    expect(await verdicts(withPast)).toEqual(['bad', 'healthy', 'unknown']);
    expect(await verdicts({ query, badWhen: above(1.5, true) })).toEqual(['unknown', 'unknown', 'unknown']);
    const alert = { query: 'ALERTS{alertname="Slow",alertstate="firing"}', isAlert: true, noData: 'healthy' } as const;
    expect(await verdicts(alert)).toEqual(['healthy', 'healthy', 'healthy']);
    expect(await verdicts({ query: 'sum by (' })).toBe('misconfigured');
    await series.close();
  });

  it('scrapes the emulator: the 95th percentile of a compute that is too small is bad', async () => {
    const series = createPrometheusSeries({ url });
    const asker = createGuardAsker({ of: () => series, close: () => series.close() });
    const query = 'histogram_quantile(0.95, sum by (le, compute_id) (rate(http_request_duration_seconds_bucket[2m])))';
    const guard = aGuard({ query, match: { compute_id: '{compute_id}' } });
    const computes = ['ep-small', 'ep-large'].map((computeId) => aCompute({ computeId }));
    const states = async () => {
      const answer = await asker.ask({ guard, source: PROMETHEUS, computes, nowMs: Date.now(), signal: NEVER });
      return [...answer.verdicts.values()].map(({ state }) => state);
    };
    await eventually(states).toEqual(['bad', 'healthy']);
    await series.close();
  });
});
