import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { AskedPostgres } from '../../domain/awake/clients.ts';

const Client = z.object({
  kind: z.enum(['periodic', 'frequent', 'irregular', 'open_transaction', 'long_query', 'replication']),
  user: z.string(),
  application: z.string().optional(),
  queries: z.array(z.object({ queryId: z.string().optional(), text: z.string() })),
  periodMs: z.number().optional(),
  ...{ visits: z.number(), share: z.number(), confidence: z.enum(['high', 'low']) },
});

const Asked = z.record(
  z.string(),
  z.object({
    ...{ atMs: z.number(), samples: z.number(), sampledMs: z.number(), keptAwakeMs: z.number() },
    clients: z.array(Client),
    sessions: z.object({ idleInTransactionMs: z.number().optional(), replicationConnections: z.number() }),
    ...{ sawStatements: z.boolean(), until: z.enum(['time', 'alone', 'asleep', 'interrupted', 'failed']) },
  }),
);

/** What each Postgres has shown when it was asked last, by id of the compute, in a file of this machine. */
export function createAskedFile(path: string) {
  return {
    /** Empty where there is none, or it is broken: then they are asked again. */
    async read(): Promise<Map<string, AskedPostgres>> {
      const text = await readFile(path, 'utf8').catch(() => '');
      const asked = Asked.safeParse(parseJson(text));
      return new Map(asked.success ? (Object.entries(asked.data) as [string, AskedPostgres][]) : []);
    },
    async write(asked: ReadonlyMap<string, AskedPostgres>): Promise<void> {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const unfinished = `${path}.${process.pid}`;
      await writeFile(unfinished, `${JSON.stringify(Object.fromEntries(asked))}\n`, { mode: 0o600 });
      await rename(unfinished, path);
    },
  };
}
