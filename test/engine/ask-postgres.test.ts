/**
 * Who keeps a Postgres awake, named by samples of it: real servers with twelve classes of real clients at once, in virtual time. Of the
 * awake time 90 % must be named, 80 % behind a transaction pooler, and 95 % of the names must be right.
 */
import { expect, it } from 'vitest';
import { createClientSampler } from '../../src/adapters/connections/client-sampler.ts';
import { readDsn } from '../../src/adapters/connections/postgres.ts';
import { askPostgres } from '../../src/app/recommend/ask-postgres.ts';
import type { ClientSampler } from '../../src/ports/connections.ts';
import { aCompute } from '../support/builders.ts';
import { inVirtualTime, planClients, prepareDatabase, scoreNames, startPooler } from '../support/database-clients.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

const FROM = Date.parse('2026-03-02T12:00:00Z');
const SPAN_MS = 15 * 60_000;
const EVERY_MS = 10_000;
const TIMEOUT_SECONDS = 300;
/** EBB_ASK_SEEDS=11,12,13 draws others, and prints their figures. */
const { EBB_ASK_SEEDS } = process.env;
const SEEDS = (EBB_ASK_SEEDS ?? '201').split(',').map(Number);

async function run(seed: number, pooled: boolean) {
  const server = await startPostgresServer();
  await prepareDatabase(server);
  const pooler = pooled ? await startPooler(server) : undefined;
  const url = pooler?.url ?? server.url;
  const clients = await planClients({ direct: server.url, url, pooled, seed, fromMs: FROM, spanMs: SPAN_MS });
  const { timeline } = clients;
  try {
    const config = await readDsn(server.url, undefined);
    if (!config.ok) throw new Error(config.error.message);
    const real = createClientSampler(config.value);
    const sampler: ClientSampler = {
      texts: real.texts,
      async sample(signal) {
        const atMs = timeline.now();
        const sample = await timeline.during(atMs, () => real.sample(signal));
        return sample.ok ? { ok: true, value: inVirtualTime(sample.value, atMs, timeline.virtual) } : sample;
      },
    };
    const compute = aCompute({ state: 'active', suspendTimeoutSeconds: TIMEOUT_SECONDS });
    await timeline.moveTo(FROM);
    const asked = await askPostgres({
      ...{ compute, sampler, readCompute: async () => ({ ok: true, value: compute }) },
      clock: { now: timeline.now, monotonicMs: timeline.now, wait: (ms) => timeline.moveTo(timeline.now() + ms) },
      ...{ spanMs: SPAN_MS, everyMs: EVERY_MS, signal: new AbortController().signal },
    });
    if (!asked.ok) throw new Error(asked.problem);
    const span = { fromMs: FROM, toMs: FROM + SPAN_MS, timeoutMs: 1000 * TIMEOUT_SECONDS };
    const score = scoreNames(asked.value.clients, clients.truths, span);
    if (EBB_ASK_SEEDS) process.stdout.write(`${JSON.stringify({ seed, pooled, ...score })}\n`);
    return score;
  } finally {
    await clients.stop();
    await pooler?.close();
    await server.close();
  }
}

describeWith('pgbouncer', 'the clients of a real Postgres', () => {
  it.for(SEEDS)('have names: seed %i', async (seed) => {
    const { namedShare, names, wrong, missed } = await run(seed, false);
    expect(namedShare, missed.join()).toBeGreaterThanOrEqual(0.9);
    expect(wrong.length, JSON.stringify(wrong)).toBeLessThanOrEqual(0.05 * names);
  });

  it.for(SEEDS)('have names behind a transaction pooler: seed %i', async (seed) => {
    const { namedShare, names, wrong, missed } = await run(seed, true);
    expect(namedShare, missed.join()).toBeGreaterThanOrEqual(0.8);
    expect(wrong.length, JSON.stringify(wrong)).toBeLessThanOrEqual(0.05 * names);
  });
});
