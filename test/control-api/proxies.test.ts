import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { ControlApiOptions } from '../../src/adapters/control-api/caller.ts';
import { listenLocally } from '../support/local-server.ts';
import { client, serve, unwrap } from './support.ts';

const PROJECT = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };

/** A proxy that tunnels whatever it is asked for to one local port. */
async function proxyTo(port: number): Promise<{ url: string; asked: string[]; authorizations: string[] }> {
  const asked: string[] = [];
  const authorizations: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, client, head) => {
    asked.push(request.url ?? '');
    if (request.headers['proxy-authorization']) authorizations.push(request.headers['proxy-authorization']);
    const upstream = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
  });
  const { origin, close } = await listenLocally(proxy);
  onTestFinished(close);
  return { url: origin, asked, authorizations };
}

function clientVia(proxy: ControlApiOptions['proxy'], baseUrl: string) {
  return client(baseUrl, { allowPlainHttp: true, proxy });
}

test('another machine is reached through the proxy', async () => {
  const { url, port, requests } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  const api = clientVia({ url: proxy.url, except: '' }, url.replace('127.0.0.1', 'control-api.test'));
  unwrap(await api.listComputes(PROJECT));
  expect(proxy.asked).toEqual([`control-api.test:${port}`]);
  expect(requests[0]?.headers.host).toBe(`control-api.test:${port}`);
});

test('a user and a password are for the proxy alone', async () => {
  const { url, port, requests } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  const withUser = proxy.url.replace('//', '//me:pl4nted@');
  unwrap(
    await clientVia({ url: withUser, except: '' }, url.replace('127.0.0.1', 'control-api.test')).listComputes(PROJECT),
  );
  expect(proxy.authorizations).toEqual([`Basic ${Buffer.from('me:pl4nted').toString('base64')}`]);
  expect(requests[0]?.headers).not.toHaveProperty('proxy-authorization');
});

test('loopback is reached directly, whatever the proxy', async () => {
  const { url, port } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  unwrap(await clientVia({ url: proxy.url, except: '' }, url).listComputes(PROJECT));
  expect(proxy.asked).toEqual([]);
});

test('a host that is excepted is reached directly', async () => {
  const { port } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  const api = clientVia({ url: proxy.url, except: '.test' }, `http://control-api.test:${port}/api/v2`);
  expect((await api.listComputes(PROJECT, { deadlineMs: 300 })).ok).toBe(false);
  expect(proxy.asked).toEqual([]);
});

test('the variables of the process are not looked at', async () => {
  const { port } = await serve(() => ({ body: { endpoints: [] } }));
  const proxy = await proxyTo(port);
  for (const name of ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY']) vi.stubEnv(name, proxy.url);
  onTestFinished(() => void vi.unstubAllEnvs());
  const api = clientVia(undefined, `http://control-api.test:${port}/api/v2`);
  expect((await api.listComputes(PROJECT, { deadlineMs: 300 })).ok).toBe(false);
  expect(proxy.asked).toEqual([]);
});
