/** Whether receivers that never answer make changes at a boundary later: the same boundary without and with them, in turns. */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { findProgram, missing } from '../test/support/programs.ts';
import { percentile, printTable } from './figures.ts';
import { boundaryAt, patchesOf } from './fleet.ts';
import { startDaemon, UNLIMITED } from './fleet-stage.ts';

const COMPUTES = 200;
const TURNS = 5;

/** Until then the daemon has started, and read the fleet. */
const START_MS = 30_000;
const LONGEST_MS = 60_000;

export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`notifications is left out: ${missing('redis-server')}\n`);
    return;
  }
  const without: number[] = [];
  const hanging: number[] = [];
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const alone = await latenessMs('');
    const receiver = await startHanging();
    const beside = await latenessMs(receiver.settings).finally(() => receiver.close());
    without.push(...alone.late);
    hanging.push(...beside.late);
    process.stdout.write(
      `turn ${turn}: p50 ${at(alone.late, 0.5)} and ${at(beside.late, 0.5)} ms; ${receiver.connections()} connections without an answer, ${beside.waiting} notifications wait\n`,
    );
  }
  const ratio = (share: number) => `× ${(percentile(hanging, share) / percentile(without, share)).toFixed(2)}`;
  const row = (name: string, late: readonly number[]) => [
    name,
    String(late.length),
    ...[0.5, 0.99].map((share) => `${at(late, share)} ms`),
  ];
  printTable(
    ['receivers', 'changes', 'lateness p50', 'p99'],
    [
      row('none', without),
      row('two webhooks and that of the audit, which never answer', hanging),
      ['ratio', '', ratio(0.5), ratio(0.99)],
    ],
  );
}

function at(late: readonly number[], share: number): number {
  return Math.round(percentile(late, share));
}

/** How late each change of one boundary was sent, and how many notifications waited then. */
async function latenessMs(settings: string): Promise<{ late: number[]; waiting: number }> {
  const boundaryMs = Math.ceil((Date.now() + START_MS) / 1000) * 1000;
  const fleet = { projects: COMPUTES, state: 'active', connections: 2, perMinute: UNLIMITED } as const;
  const env = { EBB_NOTIFY_SECRET: 'of-the-bench' };
  const stage = await startDaemon({ ...fleet, policy: boundaryAt(boundaryMs), settings, env });
  try {
    let late: number[] = [];
    while (late.length < COMPUTES && Date.now() < boundaryMs + LONGEST_MS) {
      await sleep(2_000);
      late = (await patchesOf(stage)).map(({ atMs }) => atMs - boundaryMs);
    }
    const { body } = await request(`${stage.daemonUrl}/metrics`);
    const counts = (await body.text()).matchAll(/^ebb_notifications_waiting\{.*\} (\d+)$/gm);
    return { late, waiting: [...counts].reduce((sum, [, count]) => sum + Number(count), 0) };
  } finally {
    await stage.close();
  }
}

/** Accepts every connection, and never answers. */
async function startHanging() {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => {}).resume()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const webhook = `url: "${url}", secret_env: EBB_NOTIFY_SECRET`;
  return {
    settings: `notify_before: 15m\nnotify: { all: { to: webhook, ${webhook} }, more: { to: webhook, ${webhook} } }\naudit: { webhook: { ${webhook} } }\n`,
    connections: () => sockets.length,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
