import { describe, expect, it, onTestFinished } from 'vitest';
import { createPrometheusCounter } from '../../src/adapters/connections/prometheus.ts';
import { aCompute } from '../support/builders.ts';
import { type MetricsServer, type Reply, startMetricsServer, vector } from '../support/metrics-server.ts';

const NEVER = new AbortController().signal;
async function counting(query: string, reply: Reply, timeoutMs = 5_000) {
  const server: MetricsServer = await startMetricsServer(reply);
  onTestFinished(() => server.close());
  const counter = createPrometheusCounter({ url: `${server.url}/base/`, query, timeoutMs });
  onTestFinished(() => counter.close());
  const count = async (...computeIds: string[]) => {
    const requests = computeIds.map((computeId) => ({ compute: aCompute({ computeId }) }));
    return Object.fromEntries(await counter.count(requests, NEVER));
  };
  return { server, count };
}

const SUM = 'sum(neon_connection_counts{datname="shop",endpoint_id="$compute"})';

describe('a Prometheus as source of connection counts', () => {
  it('is asked once about many computes where the query is a plain sum', async () => {
    const found = ['ep-b', 'ep-a'].map((id, index) => ({ labels: { endpoint_id: id }, value: `${index + 6.2}` }));
    const { server, count } = await counting(SUM, (_query, response) => response.end(vector(...found)));
    expect(await count('ep-a', 'ep-b', 'ep-c')).toMatchObject({
      'ep-a': { ok: true, value: { connections: 8 } },
      'ep-b': { ok: true, value: { connections: 7 } },
      'ep-c': { ok: false, error: { code: 'no_data' } },
    });
    const asked = 'sum by (endpoint_id) (neon_connection_counts{datname="shop",endpoint_id=~"ep-a|ep-b|ep-c"})';
    expect(server.queries).toEqual([asked]);
  });

  it.each([
    'max(c{id="$compute"})',
    'sum(c{id="$compute"}) + 1',
    'sum(c{id="$compute",project="$project"})',
    'sum(c{id!="$compute"})',
    'sum(c{id=~"$compute"})',
    'sum(c{id="$compute"}[5m])',
    'sum(c{name="a\\"b",id="$compute"})',
  ])('is asked about each compute where it is not: %s', async (query) => {
    const { server, count } = await counting(query, (_query, response) => response.end(vector({ value: '4' })));
    expect(await count('ep-a', 'ep-b')).toMatchObject({ 'ep-a': { ok: true }, 'ep-b': { ok: true } });
    const filled = (id: string) => query.replace('$compute', id).replace('$project', 'p-one');
    expect(server.queries.toSorted()).toEqual([filled('ep-a'), filled('ep-b')]);
  });

  it('never has an id in its query that could change it', async () => {
    const { server, count } = await counting('sum(c{id="$compute"})', (_query, response) => response.end(vector()));
    expect(await count('ep"} or vector(0)#')).toMatchObject({
      'ep"} or vector(0)#': { ok: false, error: { code: 'misconfigured' } },
    });
    expect(server.queries).toEqual([]);
  });

  it.each<[string, string, string]>([
    ['an empty vector', vector(), 'no_data'],
    ['NaN', vector({ value: 'NaN' }), 'no_data'],
    ['infinity', vector({ value: '+Inf' }), 'malformed'],
    ['an empty value', vector({ value: '' }), 'malformed'],
    ['a blank value', vector({ value: ' ' }), 'malformed'],
    ['a hexadecimal value', vector({ value: '0x10' }), 'malformed'],
    ['more than there can be', vector({ value: '1e300' }), 'malformed'],
    ['less than nothing', vector({ value: '-1' }), 'malformed'],
    ['two series', vector({ value: '1' }, { labels: { db: 'b' }, value: '2' }), 'malformed'],
    ['a matrix', '{"status":"success","data":{"resultType":"matrix","result":[]}}', 'malformed'],
    ['something else', '<html>', 'malformed'],
    ['an error', '{"status":"error","errorType":"bad_data","error":"parse error"}', 'unavailable'],
  ])('gives no count for %s', async (_name, body, code) => {
    const { count } = await counting('max(c{id="$compute"})', (_query, response) => response.end(body));
    expect(await count('ep-a')).toMatchObject({ 'ep-a': { ok: false, error: { code } } });
  });

  it.each<[string, Reply, string]>([
    [
      'that redirects',
      (_query, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'misconfigured',
    ],
    ['that is overloaded', (_query, response) => response.writeHead(503).end(), 'unavailable'],
    ['that never ends its answer', (_query, response) => void response.write('{'), 'timeout'],
    ['that hangs up', (_query, response) => response.destroy(), 'unavailable'],
    ['that talks too much', (_query, response) => response.end(' '.repeat(5_000_000)), 'malformed'],
  ])('gives no count for one %s', async (_name, reply, code) => {
    const { count } = await counting('max(c{id="$compute"})', reply, 500);
    expect(await count('ep-a')).toMatchObject({ 'ep-a': { ok: false, error: { code } } });
  });

  it('may answer with a scalar', async () => {
    const scalar = '{"status":"success","data":{"resultType":"scalar","result":[1,"5"]}}';
    const { count } = await counting('scalar(c{id="$compute"})', (_query, response) => response.end(scalar));
    expect(await count('ep-a')).toEqual({ 'ep-a': { ok: true, value: { connections: 5 } } });
  });
});
