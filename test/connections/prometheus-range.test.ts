import { describe, expect, it, onTestFinished } from 'vitest';
import { createPrometheusHistory } from '../../src/adapters/connections/prometheus-range.ts';
import { aCompute } from '../support/builders.ts';
import { type Reply, startMetricsServer } from '../support/metrics-server.ts';

const matrix = (...series: [number, string][][]) =>
  JSON.stringify({
    status: 'success',
    data: { resultType: 'matrix', result: series.map((values) => ({ metric: {}, values })) },
  });

const everySecond = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, nth): [number, string] => [from + nth, '1.5']);

async function recordOf(reply: Reply) {
  const server = await startMetricsServer(reply);
  onTestFinished(() => server.close());
  const history = createPrometheusHistory({ url: server.url, query: 'sum(c{id="$compute",p="$project"})' });
  onTestFinished(() => history.close());
  const of = (seconds: number, computeId = 'ep-a') =>
    history.counts(aCompute({ computeId }), { fromMs: 0, toMs: seconds * 1000, stepMs: 1000 });
  return { server, of };
}

describe('what a Prometheus remembers', () => {
  it('is asked for in parts that it does not refuse, and put together', async () => {
    const { server, of } = await recordOf((_query, response, { start, end }) =>
      response.end(matrix(everySecond(Number(start), Number(end)))),
    );
    const read = await of(25_000);
    expect(read).toEqual({
      ok: true,
      value: Array.from({ length: 25_000 }, (_, second) => ({ atMs: second * 1000, connections: 2 })),
    });
    expect(server.queries).toEqual(Array(3).fill('sum(c{id="ep-a",p="p-one"})'));
  });

  it('is asked for what is before the end, which an answer would have in it, too', async () => {
    const asked: unknown[] = [];
    const { of } = await recordOf((_query, response, { start, end, step }) => {
      asked.push([start, end, step]);
      response.end(matrix());
    });
    await of(10);
    await of(10_000);
    await of(10_001);
    expect(asked).toEqual([
      ['0', '9', '1'],
      ['0', '9999', '1'],
      ['0', '9999', '1'],
      ['10000', '10000', '1'],
    ]);
  });

  it.each<[string, string, object]>([
    ['no series', matrix(), { ok: true, value: [] }],
    ['NaN', matrix([[1, 'NaN']]), { ok: true, value: [] }],
    ['two series', matrix([[1, '1']], [[1, '2']]), { ok: false, error: { code: 'malformed' } }],
    ['infinity', matrix([[1, '+Inf']]), { ok: false, error: { code: 'malformed' } }],
    [
      'the same instant twice',
      matrix([
        [1, '1'],
        [1, '2'],
      ]),
      { ok: false, error: { code: 'malformed' } },
    ],
    [
      'backwards',
      matrix([
        [2, '1'],
        [1, '2'],
      ]),
      { ok: false, error: { code: 'malformed' } },
    ],
    ['of another time', matrix([[12, '1']]), { ok: false, error: { code: 'malformed' } }],
    ['of a time before', matrix([[-2, '1']]), { ok: false, error: { code: 'malformed' } }],
    ['more than was asked for', matrix(everySecond(0, 179_999)), { ok: false, error: { code: 'malformed' } }],
    [
      'an instant answer',
      '{"status":"success","data":{"resultType":"vector","result":[]}}',
      { ok: false, error: { code: 'malformed' } },
    ],
  ])('may be %s', async (_what, body, expected) => {
    const { of } = await recordOf((_query, response) => response.end(body));
    expect(await of(10)).toMatchObject(expected);
  });

  it('never has an id in its query that could change it', async () => {
    const { server, of } = await recordOf((_query, response) => response.end(matrix()));
    expect(await of(10, 'a"} or x{b="')).toMatchObject({ ok: false, error: { code: 'misconfigured' } });
    expect(server.queries).toEqual([]);
  });
});
