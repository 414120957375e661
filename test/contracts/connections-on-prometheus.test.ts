import { afterAll, beforeAll, describe } from 'vitest';
import { createPrometheusCounter } from '../../src/adapters/connections/prometheus.ts';
import { aCompute } from '../support/builders.ts';
import { type MetricsServer, startMetricsServer, vector } from '../support/metrics-server.ts';
import { type CountedWorld, describeConnectionCounter } from './connections.contract.ts';

describe('connection counts of Prometheus', () => {
  let world: CountedWorld;
  let server: MetricsServer;
  let connected = 0;

  beforeAll(async () => {
    server = await startMetricsServer((_query, response) => {
      const isRight = server.authorizations.at(-1) === 'Bearer right';
      response.statusCode = isRight ? 200 : 401;
      response.end(isRight ? vector({ labels: { endpoint_id: 'ep-one' }, value: `${connected}` }) : 'no');
    });
    const counterOf = (readToken: () => Promise<string>) =>
      createPrometheusCounter({ url: server.url, query: 'sum(c{endpoint_id="$compute"})', readToken });
    world = {
      counter: counterOf(async () => 'right'),
      compute: aCompute(),
      connect: async (connections) => {
        connected = connections;
      },
      withWrongSecret: async () => counterOf(async () => 'wrong-secret'),
      withoutSecret: (words) => counterOf(() => Promise.reject(new Error(words))),
      stop: () => server.close(),
    };
  });
  afterAll(async () => {
    await world.counter.close();
  });

  describeConnectionCounter(() => world);
});
