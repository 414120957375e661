import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { makeCertificate } from '../support/certificate.ts';
import { endServer, freePort, startServer } from '../support/child-server.ts';
import { askRedis } from '../support/engine-daemon.ts';
import { memoryLog } from '../support/memory-log.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const CHILD = fileURLToPath(new URL('./embedded-child.ts', import.meta.url));

describeWith('redis-server', 'Redis through TLS', () => {
  describeWith('openssl', 'with a certificate of its own', () => {
    let folder: string;
    let tlsPort: number;
    let server: RedisServer;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'ebb-tls-'));
      tlsPort = await freePort();
      makeCertificate(folder);
      const files = ['--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem', '--tls-ca-cert-file', 'cert.pem'];
      const settings = files.map((text) => (text.endsWith('.pem') ? join(folder, text) : text));
      const bus = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-port', `${await freePort()}`];
      // A node that no other one told of its address doesn't know it.
      const announced = ['--cluster-announce-ip', '127.0.0.1'];
      const port = ['--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no'];
      server = await startRedisServer({ args: [...port, ...settings, ...bus, ...announced] });
      await askRedis(server.url, async (client) => {
        await client.cluster('ADDSLOTSRANGE', 0, 16_383);
        const complete = async () => expect(String(await client.cluster('INFO'))).toContain('cluster_state:ok');
        await vi.waitFor(complete, { timeout: 50_000 });
      });
    });
    afterAll(async () => {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    });

    it('is refused while nobody vouches for its certificate', async () => {
      const url = `rediss://127.0.0.1:${tlsPort}`;
      const opened = await openEngine({ url, group: 'test', log: memoryLog() });
      expect(opened.ok || opened.error.message).toContain('the TLS handshake failed; ');
    });

    it('works, through every connection, with an authority of its own', async () => {
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, 'cert.pem') };
      const url = `rediss+cluster://127.0.0.1:${tlsPort}`;
      const child = await startServer(process.execPath, ['--import', 'tsx', CHILD, url], /working p-1/, { env });
      const clients = await askRedis(server.url, (client) => client.client('LIST'));
      await endServer(child, 'SIGKILL');
      const local = String(clients)
        .split('\n')
        .filter((line) => line.includes(`laddr=127.0.0.1:${server.port} `));
      // The one that asked.
      expect(local).toHaveLength(1);
    });
  });
});
