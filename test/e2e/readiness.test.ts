import { createServer } from 'node:http';
import { join } from 'node:path';
import { request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { wireProject } from '../control-api/samples.ts';
import { freePort } from '../support/child-server.ts';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { openTestEngine } from '../support/engines.ts';
import { listenLocally } from '../support/local-server.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { cannotMount, smallDisk } from '../support/small-disk.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** The last cause needs a minute without an answer. */
const WAIT = { timeout: 150_000, interval: 200 };
const POLICY = `version: 1
policies:
  - { name: p, kind: schedule, select: { projects: ["*"] }, windows: [{ at: always, size: 1 }], otherwise: leave }
`;

/** The API of a platform, whose list of projects has another page for ever while it is told to. */
async function startApi(origin: string) {
  const told = { isEndless: false };
  let pages = 0;
  const server = createServer(async (incoming, response) => {
    if (told.isEndless && incoming.url?.startsWith('/api/v2/projects?')) {
      pages += 1;
      const page = { projects: [wireProject(`p-${pages}`)], pagination: { cursor: `c-${pages}` } };
      response.end(JSON.stringify(page));
      return;
    }
    const { authorization = '' } = incoming.headers;
    const answer = await request(`${origin}${incoming.url}`, { headers: { authorization } });
    const retryAfter = answer.headers['retry-after'];
    response.writeHead(answer.statusCode, retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) });
    response.end(await answer.body.text());
  });
  const local = await listenLocally(server);
  undo.push(local.close);
  return { told, url: `${local.origin}/api/v2` };
}

const why = cannotMount();
describe.skipIf(why !== undefined)(`/readyz of a daemon on an embedded store${why ? ` (${why})` : ''}`, () => {
  it('goes red, and says why, for a full disk, an endless list, a broken record, and nothing sent for 60 s', async () => {
    const disk = await smallDisk(150);
    undo.push(disk.remove);
    await copyDatabase(join(disk.path, 'q'));
    const platform = await startTestPlatform({ one: {} });
    undo.push(() => platform.close());
    const api = await startApi(platform.origin);
    const folder = await makeFolder({ 'policy.yaml': POLICY });
    undo.push(() => folder.remove());
    const listen = `127.0.0.1:${await freePort()}`;
    const queue = `embedded:${join(disk.path, 'q')}`;
    const start = () => {
      const env = {
        EBB_API_URL: api.url,
        EBB_API_KEY: platform.apiKey,
        // At the usual rate a list of 300 pages takes half a minute.
        EBB_API_REQUESTS_PER_MINUTE: '20000',
        EBB_QUEUE_URL: queue,
        EBB_LISTEN: listen,
        EBB_GROUP: 'test',
      };
      const ebb = startEbb(['run', '--policies', 'policy.yaml'], { cwd: folder.path, env });
      undo.push(() => ebb.kill());
      return ebb;
    };
    const red = async () => {
      const answer = await request(`http://${listen}/readyz`).catch(() => undefined);
      if (!answer) return ['no answer'];
      const { checks } = (await answer.body.json()) as { checks: { name: string; ok: boolean; message: string }[] };
      const found = checks.filter(({ ok }) => !ok).map(({ name, message }) => `${name}: ${message}`);
      expect(answer.statusCode).toBe(found.length === 0 ? 200 : 503);
      return found;
    };
    const since = performance.now();
    const becomes = async (cause: string, expected: unknown[]) => {
      const fromMs = performance.now();
      await expect.poll(red, WAIT).toEqual(expected);
      const [took, at] = [fromMs, since].map((ms) => ((performance.now() - ms) / 1000).toFixed(1));
      process.stdout.write(`${at} s: ${expected.length > 0 ? 'red' : 'green'} ${took} s after ${cause}\n`);
    };

    const daemon = start();
    await becomes('the start', []);
    disk.fill();
    await becomes('the disk was full', [expect.stringMatching(/^store: .*No space left on device/)]);
    await disk.makeRoom();
    await becomes('there was room again', []);
    api.told.isEndless = true;
    await becomes('the list had no end', [
      expect.stringMatching(/^account default: GET \/projects: .*no end: more than 300 pages$/),
    ]);
    api.told.isEndless = false;
    await becomes('the list had an end again', []);
    await daemon.kill('SIGTERM');
    expect(await daemon.ended).toBe(0);

    await breakRecord(queue);
    start();
    const broken = expect.stringMatching(/^records: .* not touched: ep-broken;/);
    await becomes('a start with a broken record', [broken]);
    await platform.control('faults', { kind: 'status', status: 429, retry_after_seconds: 86_400 });
    await becomes('every answer was 429, Retry-After: 86400', [
      broken,
      expect.stringMatching(/^account default: nothing could be sent for 6\d s/),
    ]);
  }, 400_000);
});

/** Stores a record as a newer version might. */
async function breakRecord(queue: string): Promise<void> {
  const { engine } = await openTestEngine(queue);
  if (engine.kind !== 'postgres') throw new Error('not on Postgres');
  await engine.pool.query(`INSERT INTO ebb_record (project_id, compute_id, body) VALUES ('one', 'ep-broken', '{}')`);
  await engine.close();
}
