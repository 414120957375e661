import { type PgPool, runMigrations } from 'bullmq';

/** Brings the group's schema up to date with this BullMQ, in one transaction. */
export async function prepareSchema({ pool, schema }: { pool: PgPool; schema: string }): Promise<void> {
  const client = await pool.connect();
  try {
    await runMigrations(client, schema);
  } finally {
    client.release();
  }
}
