/** A real Prometheus that is given samples of any time, and asked as if that time were now. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent } from 'undici';
import { endServer, onFreePort, startServer } from '../support/child-server.ts';
import { programPath } from '../support/programs.ts';

export interface PushedSeries {
  labels: Readonly<Record<string, string>>;
  /** Oldest first; milliseconds since the epoch. */
  samples: { atMs: number; value: number }[];
}

export interface PushedPrometheus {
  /** Answers instant queries at the time of the test. */
  url: string;
  push(series: Iterable<PushedSeries>): Promise<void>;
  close(): Promise<void>;
}

export async function startPushedPrometheus(nowMs: () => number): Promise<PushedPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-guards-'));
  await writeFile(join(folder, 'prometheus.json'), '{}');
  const { port, started } = await onFreePort((on) => {
    const files = [`--config.file=${join(folder, 'prometheus.json')}`, `--storage.tsdb.path=${join(folder, 'data')}`];
    const flags = ['--web.enable-remote-write-receiver', '--storage.tsdb.retention.time=2y'];
    const args = [...files, ...flags, `--web.listen-address=127.0.0.1:${on}`];
    return startServer(programPath('prometheus'), args, /ready to receive web requests/);
  });
  const agent = new Agent();
  const origin = `http://127.0.0.1:${port}`;
  const post = async (path: string, type: string, body: string | Buffer) => {
    const answer = await agent.request({ origin, path, method: 'POST', headers: { 'content-type': type }, body });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const front = createServer(async (request, response) => {
    const form = new URLSearchParams();
    let text = '';
    for await (const chunk of request) text += chunk;
    for (const [name, value] of new URLSearchParams(text)) form.set(name, value);
    if (request.url?.endsWith('/query')) form.set('time', String(nowMs() / 1000));
    const answer = await post(request.url ?? '/', 'application/x-www-form-urlencoded', form.toString());
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.text);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => front.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    async push(series) {
      const body = snappy(Buffer.concat([...series].map((one) => field(1, encoded(one)))));
      const { status, text } = await post('/api/v1/write', 'application/x-protobuf', body);
      if (status >= 300) throw new Error(`Prometheus refuses samples: ${status} ${text}`);
    },
    async close() {
      front.closeAllConnections();
      front.close();
      await agent.destroy();
      await endServer(started, 'SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Protocol buffers of a remote write: a series has labels (1: name, 2: value) and samples (1: value, 2: milliseconds). */
function encoded({ labels, samples }: PushedSeries): Buffer {
  const names = Object.keys(labels).sort();
  const texts = names.map((name) => {
    return field(1, Buffer.concat([field(1, Buffer.from(name)), field(2, Buffer.from(labels[name] ?? ''))]));
  });
  return Buffer.concat([...texts, encodedSamples(samples)]);
}

/** The bytes of a sample: the head of its message, a double, and an instant between 1971 and 2109 as a varint of six bytes. */
const SAMPLE_BYTES = 2 + 9 + 7;

/** In one buffer, since months have a hundred million of them. */
function encodedSamples(samples: PushedSeries['samples']): Buffer {
  const bytes = Buffer.alloc(SAMPLE_BYTES * samples.length);
  let offset = 0;
  for (const { atMs, value } of samples) {
    bytes[offset] = 0x12;
    bytes[offset + 1] = SAMPLE_BYTES - 2;
    bytes[offset + 2] = 0x09;
    bytes.writeDoubleLE(value, offset + 3);
    bytes[offset + 11] = 0x10;
    let rest = atMs;
    for (let index = 12; index < SAMPLE_BYTES; index += 1) {
      bytes[offset + index] = (rest % 0x80) + (index < SAMPLE_BYTES - 1 ? 0x80 : 0);
      rest = Math.floor(rest / 0x80);
    }
    offset += SAMPLE_BYTES;
  }
  return bytes;
}

function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([number * 8 + 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return Buffer.from([...bytes, rest]);
}

/** The block format of Snappy, without compression: one literal with a length of four bytes. */
function snappy(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5, 0xfc);
  head.writeUInt32LE(Math.max(0, bytes.length - 1), 1);
  return Buffer.concat([varint(bytes.length), head, bytes]);
}
