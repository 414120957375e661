import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createControlApi } from '../../src/adapters/control-api/client.ts';
import { clientOptions } from './samples.ts';
import { serve, unwrap } from './support.ts';

const PROJECT = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };

/** A proxy that tunnels whatever it is asked for to one local port. */
async function proxyTo(port: number): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, client, head) => {
    asked.push(request.url ?? '');
    const upstream = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked };
}

async function withProxyVariables(variables: Record<string, string>, baseUrl: string) {
  for (const name of ['http_proxy', 'HTTP_PROXY', 'no_proxy', 'NO_PROXY']) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const api = createControlApi(clientOptions(baseUrl, { allowPlainHttp: true }));
  onTestFinished(() => api.close());
  return api;
}

test('another machine is reached through the proxy of the usual variable', async () => {
  const { url, port, requests } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  const api = await withProxyVariables({ HTTP_PROXY: proxy.url }, url.replace('127.0.0.1', 'control-api.test'));
  unwrap(await api.listComputes(PROJECT));
  expect(proxy.asked).toEqual([`control-api.test:${port}`]);
  expect(requests[0]?.headers.host).toBe(`control-api.test:${port}`);
});

test('loopback is reached directly, whatever the variables say', async () => {
  const { url, port } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  const api = await withProxyVariables({ HTTP_PROXY: proxy.url, http_proxy: proxy.url, NO_PROXY: '' }, url);
  unwrap(await api.listComputes(PROJECT));
  expect(proxy.asked).toEqual([]);
});

test('NO_PROXY is obeyed', async () => {
  const { port } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  const variables = { HTTP_PROXY: proxy.url, NO_PROXY: 'control-api.test' };
  const api = await withProxyVariables(variables, `http://control-api.test:${port}/api/v2`);
  expect((await api.listComputes(PROJECT, { deadlineMs: 300 })).ok).toBe(false);
  expect(proxy.asked).toEqual([]);
});
