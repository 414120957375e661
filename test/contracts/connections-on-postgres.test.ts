import { appendFile, readFile, writeFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { createPostgresCounter } from '../../src/adapters/connections/postgres.ts';
import { aCompute } from '../support/builders.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';
import { type CountedWorld, describeConnectionCounter } from './connections.contract.ts';

describeWith('postgres', 'connection counts of Postgres', () => {
  let world: CountedWorld;
  let server: PostgresServer;
  const clients: pg.Client[] = [];
  const counterOf = (readDsnText: () => Promise<string>) =>
    createPostgresCounter({ readDsnText, now: () => Date.now() });

  beforeAll(async () => {
    server = await startPostgresServer();
    world = {
      counter: counterOf(async () => server.url.replace('127.0.0.1', '$host')),
      compute: aCompute({ host: '127.0.0.1' }),
      async connect(connections) {
        while (clients.length > connections) await clients.pop()?.end();
        while (clients.length < connections) {
          const client = new pg.Client({ connectionString: server.url });
          client.on('error', () => undefined);
          clients.push(client);
          await client.connect();
        }
      },
      async withWrongSecret() {
        const admin = new pg.Client({ connectionString: server.url });
        await admin.connect();
        await admin.query("CREATE ROLE watcher LOGIN PASSWORD 'right'");
        const { rows } = await admin.query('SHOW hba_file');
        const hba = await readFile(rows[0].hba_file, 'utf8');
        await writeFile(rows[0].hba_file, 'host all watcher 127.0.0.1/32 scram-sha-256\n');
        await appendFile(rows[0].hba_file, hba);
        await admin.query('SELECT pg_reload_conf()');
        await admin.end();
        return counterOf(async () => server.url.replace('ebb@', 'watcher:wrong-secret@'));
      },
      withoutSecret: (words) => counterOf(() => Promise.reject(new Error(words))),
      stop: () => server.kill(),
    };
  }, 60_000);
  afterAll(async () => {
    for (const client of clients) await client.end().catch(() => undefined);
    await server.close();
  });

  describeConnectionCounter(() => world);
});
