import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Agent } from 'undici';
import { createControlApi } from '../src/adapters/control-api/control-api.ts';
import { clientOptions, wireCompute } from '../test/control-api/samples.ts';
import { medianMs, printTable } from './figures.ts';

const REQUESTS = 1_000;
const CONCURRENT = 8;
const COMPUTES = [1, 20, 100] as const;

/** What the client costs over bare undici and `JSON.parse`: keys, budget, deadline, checking and translating each compute. */
export async function run(): Promise<void> {
  const rows: string[][] = [];
  for (const computes of COMPUTES) rows.push(await compare(computes));
  printTable(['computes in the answer', 'bare undici', 'client', 'more for each call', 'ratio'], rows);
}

async function compare(computes: number): Promise<string[]> {
  const endpoints = Array.from({ length: computes }, (_, index) => wireCompute(`ep-${index}`));
  const server = await startServer(JSON.stringify({ endpoints }));
  const agent = new Agent({ connections: CONCURRENT });
  const api = createControlApi(clientOptions(server.url));
  const project = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };
  const path = '/api/v2/projects/calm-sea-1/endpoints';

  const bareMs = await medianMs(5, () =>
    send(async () => {
      const answer = await agent.request({ origin: server.origin, path, method: 'GET' });
      JSON.parse(await answer.body.text());
    }),
  );
  const clientMs = await medianMs(5, () =>
    send(async () => {
      const answer = await api.listComputes(project);
      if (!answer.ok) throw new Error(answer.error.message);
    }),
  );
  await api.close();
  await agent.destroy();
  await server.close();
  const moreUs = ((clientMs - bareMs) / REQUESTS) * 1_000;
  return [
    `${computes}`,
    `${perSecond(bareMs)}/s`,
    `${perSecond(clientMs)}/s`,
    `${moreUs.toFixed(0)} µs`,
    `× ${(clientMs / bareMs).toFixed(2)}`,
  ];
}

async function send(call: () => Promise<void>): Promise<void> {
  let left = REQUESTS;
  const work = async () => {
    while (left > 0) {
      left -= 1;
      await call();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, work));
}

function perSecond(ms: number): string {
  return Math.round((REQUESTS / ms) * 1_000).toLocaleString('en');
}

/** Plain HTTP in a thread of its own, so that the server's work is in neither figure. */
async function startServer(body: string) {
  const code = `
    const { createServer } = require('node:http');
    const { parentPort, workerData } = require('node:worker_threads');
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(workerData);
    });
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(code, { eval: true, workerData: body });
  const [port] = await once(worker, 'message');
  const origin = `http://127.0.0.1:${port}`;
  return { origin, url: `${origin}/api/v2`, close: () => worker.terminate() };
}
