/** Sources that speak TLS, with a certificate that only those trust who are told to. */
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPostgresCounter } from '../../src/adapters/connections/postgres.ts';
import { createPrometheusCounter } from '../../src/adapters/connections/prometheus.ts';
import type { ConnectionCounter } from '../../src/ports/connections.ts';
import { aCompute } from '../support/builders.ts';
import { makeCertificate } from '../support/certificate.ts';
import { vector } from '../support/metrics-server.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

const UNTRUSTED = { ok: false, error: { code: 'tls', message: expect.stringMatching(/certificate/i) } };

async function outcomeOf(counter: ConnectionCounter) {
  const compute = aCompute();
  const outcomes = await counter.count([{ compute }], new AbortController().signal);
  await counter.close();
  return outcomes.get(compute.computeId);
}

describeWith('openssl', 'a source that speaks TLS', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ebb-tls-'));
    makeCertificate(folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('gives no count as a Prometheus whose certificate nobody vouches for', async () => {
    const [key, cert] = await Promise.all(['key.pem', 'cert.pem'].map((name) => readFile(join(folder, name))));
    let asked = 0;
    const server = createServer({ key, cert }, (_request, response) => {
      asked += 1;
      response.end(vector({ value: '1' }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const readToken = async () => 'secret';
    expect(await outcomeOf(createPrometheusCounter({ url, query: 'max(c{id="$compute"})', readToken }))).toEqual(
      UNTRUSTED,
    );
    server.closeAllConnections();
    server.close();
    // The token is told to nobody who can't say who he is.
    expect(asked).toBe(0);
  });

  describeWith('postgres', 'as a Postgres', () => {
    it('gives a count to those who trust its certificate, and tells the others why not', async () => {
      const server = await startPostgresServer();
      try {
        await switchTlsOn(server.url, folder);
        const counting = (more: string) =>
          createPostgresCounter({ readDsnText: async () => `${server.url}${more}`, now: () => Date.now() });
        expect(await outcomeOf(counting('?sslmode=verify-full'))).toEqual(UNTRUSTED);
        const trusting = `?sslmode=verify-full&channel_binding=require&sslrootcert=${encodeURIComponent(join(folder, 'cert.pem'))}`;
        expect(await outcomeOf(counting(trusting))).toMatchObject({ ok: true, value: { connections: 0 } });
      } finally {
        await server.close();
      }
    }, 60_000);
  });
});

async function switchTlsOn(url: string, folder: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const data: string = (await admin.query('SHOW data_directory')).rows[0].data_directory;
  const { uid, gid } = await stat(data);
  for (const [from, to] of [
    ['key.pem', 'server.key'],
    ['cert.pem', 'server.crt'],
  ] as const) {
    await copyFile(join(folder, from), join(data, to));
    await chmod(join(data, to), 0o600);
    await chown(join(data, to), uid, gid);
  }
  await admin.query('ALTER SYSTEM SET ssl = on');
  await admin.query('SELECT pg_reload_conf()');
  await expect.poll(async () => (await admin.query('SHOW ssl')).rows[0].ssl, { timeout: 10_000 }).toBe('on');
  await admin.end();
}
