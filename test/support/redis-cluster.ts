import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { onFreePort } from './child-server.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

const SLOTS = 16_384;

export interface RedisCluster {
  url: string;
  nodes: readonly RedisServer[];
  close(): Promise<void>;
}

/** A real Redis Cluster of three masters, each with a third of the slots. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const started = await Promise.all([startNode(), startNode(), startNode()]);
  const clients = started.map(({ node }) => new Redis(node.url, { retryStrategy: null, replyMapping: 'legacy' }));
  const size = Math.ceil(SLOTS / clients.length);
  for (const [index, client] of clients.entries()) {
    client.on('error', () => {});
    await client.cluster('ADDSLOTSRANGE', index * size, Math.min((index + 1) * size, SLOTS) - 1);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`);
    for (const { node, busPort } of started.slice(0, index)) {
      await client.call('CLUSTER', 'MEET', '127.0.0.1', `${node.port}`, `${busPort}`);
    }
  }
  for (const client of clients) {
    const complete = async () => {
      const info = String(await client.cluster('INFO'));
      const isComplete = info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
      if (!isComplete) throw new Error(`no complete cluster: ${info}`);
    };
    await vi.waitFor(complete, { timeout: 50_000, interval: 50 });
    client.disconnect();
  }
  const nodes = started.map(({ node }) => node);
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    close: async () => {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

/** The bus has a port of its own, since the usual one (10,000 above) may not exist. */
async function startNode(): Promise<{ node: RedisServer; busPort: number }> {
  const { port: busPort, started: node } = await onFreePort((on) => {
    const args = ['--cluster-enabled', 'yes', '--cluster-port', `${on}`, '--cluster-node-timeout', '1000'];
    return startRedisServer({ args });
  });
  return { node, busPort };
}
