import { expect, it } from 'vitest';
import { createPrometheusCounter } from '../../src/adapters/connections/prometheus.ts';
import { aCompute } from '../support/builders.ts';
import { compute, fleetOf, startTestEmulator } from './support.ts';

it('answers a source of kind prometheus with the connections of those that are awake, and wakes nobody', async (test) => {
  const awake = compute({ id: 'ep-1', state: 'active', connections: 12 });
  const world = await startTestEmulator({
    fleet: fleetOf(awake, compute({ id: 'ep-2', state: 'active' }), compute({ id: 'ep-3' })),
  });
  test.onTestFinished(() => world.emulator.close());
  const url = `${world.emulator.origin}/_emulator/prometheus`;
  const requests = ['ep-1', 'ep-2', 'ep-3'].map((computeId) => ({ compute: aCompute({ computeId }) }));
  const wanted = { 'ep-1': 12, 'ep-2': 0, 'ep-3': 'no_data' };
  // In one query for all of them, and one by one.
  const queries = [
    'sum(neon_connection_counts{endpoint_id="$compute"})',
    'sum(neon_connection_counts{endpoint_id=~"$compute"})',
  ];
  for (const query of queries) {
    const counter = createPrometheusCounter({ url, query });
    test.onTestFinished(() => counter.close());
    const outcomes = await counter.count(requests, AbortSignal.timeout(10_000));
    const told = [...outcomes].map(([id, outcome]) => {
      if (!outcome.ok) return [id, outcome.error.code];
      return [id, outcome.value === 'full' ? 'full' : outcome.value.connections];
    });
    expect(Object.fromEntries(told)).toEqual(wanted);
  }
  const { body } = await world.control('GET', '/state');
  expect(body.computes.map(({ state }: { state: string }) => state)).toEqual(['active', 'active', 'idle']);
});

it('says what it can be asked, when it is asked something else', async (test) => {
  const world = await startTestEmulator({ fleet: fleetOf() });
  test.onTestFinished(() => world.emulator.close());
  const counter = createPrometheusCounter({
    url: `${world.emulator.origin}/_emulator/prometheus`,
    query: 'max(pg_connections{id="$compute"})',
  });
  test.onTestFinished(() => counter.close());
  const outcomes = await counter.count([{ compute: aCompute({ computeId: 'ep-1' }) }], AbortSignal.timeout(10_000));
  expect(outcomes.get('ep-1')).toMatchObject({
    error: { code: 'misconfigured', message: expect.stringContaining('sum(neon_connection_counts{endpoint_id="ID"})') },
  });
});
