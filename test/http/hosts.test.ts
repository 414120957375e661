import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { startHttpServer } from '../../src/adapters/http/server.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import type { DaemonOperator } from '../../src/ports/operator.ts';
import { memoryLog } from '../support/memory-log.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Served {
  host: string;
  hosts?: string[];
  shared?: string;
}

/** Asks a server for /readyz as a browser does that was given this name for it. */
async function asked({ host, hosts = [], shared }: Served, name: string, path = '/readyz') {
  const log = memoryLog();
  const server = await startHttpServer({
    ...{ listen: { host, port: 0 }, log, hosts, insecure: true },
    tokens: createTokens({ log, local: 'known-to-this-machine', shared }),
    operator: { readiness: async () => ({ ready: true, checks: [] }) } as unknown as DaemonOperator,
  });
  if (!server.ok) throw new Error(server.error);
  closers.push(server.close);
  const { port } = new URL(server.url);
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host: name } }, (answer) => {
      let text = '';
      answer.on('data', (chunk) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode, text }));
    })
      .on('error', reject)
      .end();
  });
}

describe('without a token', () => {
  const everywhere = { host: '0.0.0.0', hosts: ['ebb', 'ebb.internal'] };

  it.each(['localhost:9464', '127.0.0.1', '[::1]:9464', 'ebb:9464', 'EBB.internal', '10.1.2.3:9464', '[fd00::1]'])(
    'pages that are served everywhere answer to this machine, addresses and known names: %s',
    async (name) => {
      expect((await asked(everywhere, name)).status).toBe(200);
    },
  );

  it.each(['attacker.example', 'ebb.attacker.example', 'localhost.attacker.example:9464', '127.0.0.1.nip.io'])(
    'pages that are served everywhere do not answer to another name: %s',
    async (name) => {
      const { status, text } = await asked(everywhere, name);
      expect([status, JSON.parse(text)]).toEqual([
        403,
        { code: 'forbidden_host', message: expect.stringMatching(/http_hosts.*EBB_HTTP_HOSTS.*EBB_TOKEN/) },
      ]);
      expect((await asked(everywhere, name, '/healthz')).status).toBe(200);
    },
  );

  it('pages of this machine answer to no address but its own, and to a name that is known', async () => {
    const local = { host: '127.0.0.1', hosts: ['ebb.internal'] };
    expect((await asked(local, '10.1.2.3')).status).toBe(403);
    expect((await asked(local, 'ebb.internal')).status).toBe(200);
  });

  it('the host of listen is known', async () => {
    expect((await asked({ host: 'localhost' }, 'localhost')).status).toBe(200);
  });
});

it('with a token the name does not matter, the token does', async () => {
  expect((await asked({ host: '0.0.0.0', shared: 'a-token-of-some-length' }, 'any.example')).status).toBe(401);
});
