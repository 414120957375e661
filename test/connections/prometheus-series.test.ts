import { describe, expect, it, onTestFinished } from 'vitest';
import { createPrometheusSeries } from '../../src/adapters/connections/prometheus-series.ts';
import { type Reply, startMetricsServer } from '../support/metrics-server.ts';

const NEVER = new AbortController().signal;
const answer = (resultType: string, result: unknown) =>
  JSON.stringify({ status: 'success', data: { resultType, result } });
const vector = (...values: string[]) =>
  answer(
    'vector',
    values.map((value) => ({ metric: { service: 'shop' }, value: [100, value] })),
  );
const matrix = (...values: [number, string][]) => answer('matrix', [{ metric: { service: 'shop' }, values }]);

async function asking(reply: Reply, timeoutMs = 5_000) {
  const server = await startMetricsServer(reply);
  onTestFinished(() => server.close());
  const series = createPrometheusSeries({ url: server.url, timeoutMs });
  onTestFinished(() => series.close());
  return { server, series };
}

describe('the series of a guard', () => {
  it('have their labels, and numbers with infinities; NaN is no sample', async () => {
    const { series } = await asking((_query, response) => response.end(vector('0.5', '+Inf', '-1e3', 'NaN')));
    const read = await series.latest('p95', NEVER);
    expect(read.ok && read.value.map(({ samples }) => samples[0]?.value)).toEqual([
      0.5,
      Number.POSITIVE_INFINITY,
      -1000,
      undefined,
    ]);
    expect(read).toMatchObject({ value: [{ labels: { service: 'shop' }, samples: [{ atMs: 100_000 }] }, {}, {}, {}] });
  });

  it('are asked for over a range', async () => {
    const forms: unknown[] = [];
    const { series } = await asking((_query, response, { query, start, end, step }) => {
      forms.push([query, start, end, step]);
      response.end(matrix([60, '1'], [120, '2']));
    });
    const read = await series.range('p95', { fromMs: 60_000, toMs: 120_000, stepMs: 60_000 }, NEVER);
    expect(forms).toEqual([['p95', '60', '120', '60']]);
    expect(read).toMatchObject({ ok: true, value: [{ samples: [{ atMs: 60_000, value: 1 }, { atMs: 120_000 }] }] });
  });

  it.each<[string, string, string]>([
    ['a number that is none', vector('fast'), 'malformed'],
    ['a range instead of values', matrix([60, '1']), 'malformed'],
    ['no JSON', '<html>', 'malformed'],
    ['a query that is wrong', JSON.stringify({ status: 'error', error: 'parse error' }), 'unavailable'],
    ['ten megabytes', ' '.repeat(10_000_000), 'malformed'],
    ['more series than a fleet has', vector(...Array(20_001).fill('1')), 'malformed'],
  ])('are refused: %s', async (_what, text, code) => {
    const { series } = await asking((_query, response) => response.end(text));
    expect(await series.latest('p95', NEVER)).toMatchObject({ ok: false, error: { code } });
  });

  it.each<[string, [number, string][]]>([
    [
      'points out of order',
      [
        [120, '1'],
        [60, '1'],
      ],
    ],
    ['points of another time', [[9_000, '1']]],
  ])('are refused: %s', async (_what, points) => {
    const { series } = await asking((_query, response) => response.end(matrix(...points)));
    const read = await series.range('p95', { fromMs: 60_000, toMs: 120_000, stepMs: 60_000 }, NEVER);
    expect(read).toMatchObject({ ok: false, error: { code: 'malformed' } });
  });

  it('are told in one printable line', async () => {
    const error = 'parse error: \u001b[31mred\n  on\ttwo lines';
    const { series } = await asking((_query, response) =>
      response.writeHead(400).end(JSON.stringify({ status: 'error', errorType: 'bad_data', error })),
    );
    const message = '400: parse error: ?[31mred on two lines';
    expect(await series.latest('p95', NEVER)).toMatchObject({ error: { code: 'misconfigured', message } });
  });

  it('are not waited for without end, and a refused token is told', async () => {
    const slow = await asking(() => {}, 50);
    expect(await slow.series.latest('p95', NEVER)).toMatchObject({ error: { code: 'timeout' } });
    const refusing = await asking((_query, response) => response.writeHead(401).end());
    expect(await refusing.series.latest('p95', NEVER)).toMatchObject({ error: { code: 'unauthorised' } });
    await refusing.server.close();
    expect(await refusing.series.latest('p95', NEVER)).toMatchObject({ error: { code: 'unavailable' } });
  });
});
