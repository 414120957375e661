/** What answers like a Prometheus: each query by a function, and what was asked. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MetricsServer {
  url: string;
  queries: string[];
  authorizations: (string | undefined)[];
  close(): Promise<void>;
}

export type Reply = (query: string, response: ServerResponse, form: Readonly<Record<string, string>>) => void;

export async function startMetricsServer(reply: Reply): Promise<MetricsServer> {
  const queries: string[] = [];
  const authorizations: MetricsServer['authorizations'] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const form = Object.fromEntries(new URLSearchParams(body));
    const { query = '' } = form;
    queries.push(query);
    authorizations.push(request.headers.authorization);
    reply(query, response, form);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    queries,
    authorizations,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An answer to an instant query with these series. */
export function vector(...series: { labels?: Record<string, string>; value: string }[]): string {
  const result = series.map(({ labels = {}, value }) => ({ metric: labels, value: [1_700_000_000, value] }));
  return JSON.stringify({ status: 'success', data: { resultType: 'vector', result } });
}
