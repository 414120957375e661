/** Keys, tokens and passwords are planted in a daemon, it is used and misled, and everything that comes out of it is searched. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { answerProblems } from '../http/api-schema.ts';
import { freePort } from '../support/child-server.ts';
import { startEbb } from '../support/ebb-process.ts';
import { askRedis } from '../support/engine-daemon.ts';
import { startMetricsServer } from '../support/metrics-server.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const PLANTED = {
  apiKey: 'pl4nted-api-key-5e1f',
  token: 'pl4nted-token-of-all-77aa',
  annsToken: 'pl4nted-token-of-ann-0c3d',
  redis: 'pl4nted-redis-password-91',
  postgres: 'pl4nted-postgres-password-2b',
  prometheus: 'pl4nted-prometheus-token-6f',
  proxy: 'pl4nted-proxy-password-d4',
};

const WAIT = { timeout: 60_000, interval: 200 };

const POLICIES = `version: 1
policies:
  - name: small
    kind: schedule
    select: { projects: ["three"], min_age: 1m }
    windows: [{ at: always, size: 0.5 }]
    otherwise: leave
    disruption: { lower: { when: any }, raise: { when: any } }
  - name: room
    kind: headroom
    select: { projects: ["one"], min_age: 1m }
    connections: metrics
    target: 70%
    max_size: 2
    scale_down: { after: 1m }
  - name: room-too
    kind: headroom
    select: { projects: ["two"], min_age: 1m }
    connections: sql
    target: 70%
    max_size: 2
    scale_down: { after: 1m }
`;

/** Asks for the password in clear, and refuses it with an error that repeats it, as no Postgres would. */
async function startCanary(): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer((socket: Socket) => {
    let started = false;
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      if (!started) {
        started = true;
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
        return;
      }
      const password = data.subarray(5, -1).toString();
      asked.push(password);
      const fields = `SFATAL\0C28P01\0Mpassword ${password} is wrong\0\0`;
      const head = Buffer.alloc(5);
      head.write('E');
      head.writeInt32BE(Buffer.byteLength(fields) + 4, 1);
      socket.end(Buffer.concat([head, Buffer.from(fields)]));
    });
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port, asked };
}

async function startAll() {
  const redis = await startRedisServer({ args: ['--requirepass', PLANTED.redis] });
  onTestFinished(() => redis.close());
  const redisUrl = redis.url.replace('//', `//:${PLANTED.redis}@`);
  const awake = { state: 'active', connections: 3, maxCu: 1 } as const;
  const platform = await startTestPlatform(
    { one: awake, two: awake, three: {} },
    { apiKey: PLANTED.apiKey, operationTimeMs: 100 },
  );
  onTestFinished(() => platform.close());
  const metrics = await startMetricsServer((_query, response) => {
    response.statusCode = 401;
    response.end(JSON.stringify({ status: 'error', error: `no such token: ${PLANTED.prometheus}` }));
  });
  onTestFinished(() => metrics.close());
  const postgres = await startCanary();
  const folder = await makeFolder({
    'policy.yaml': POLICIES,
    tokens: `ann: ${PLANTED.annsToken}\n`,
    'ebb.yaml': `sources:
  metrics: { from: prometheus, url: "${metrics.url}", query: 'sum(c{id="$compute"})', token_env: EBB_PROMETHEUS_TOKEN, every: 10s }
  sql: { from: postgres, dsn_env: EBB_DSN_WATCH, every: 10s }
`,
  });
  onTestFinished(() => folder.remove());
  const env = {
    EBB_API_URL: platform.url,
    EBB_API_KEY: PLANTED.apiKey,
    EBB_MODE: 'enforce',
    EBB_QUEUE_URL: redisUrl,
    EBB_GROUP: 'test',
    EBB_LISTEN: `127.0.0.1:${await freePort()}`,
    EBB_POLICIES: 'policy.yaml',
    EBB_LOG_LEVEL: 'debug',
    EBB_TOKEN: PLANTED.token,
    EBB_TOKEN_FILE: 'tokens',
    EBB_DSN_WATCH: `postgres://watch:${PLANTED.postgres}@127.0.0.1:${postgres.port}/postgres?sslmode=disable`,
    EBB_PROMETHEUS_TOKEN: PLANTED.prometheus,
    HTTPS_PROXY: `http://user:${PLANTED.proxy}@127.0.0.1:9`,
  };
  const daemon = startEbb(['run'], { cwd: folder.path, env });
  onTestFinished(() => daemon.kill());
  return { platform, metrics, postgres, redisUrl, folder: folder.path, env, daemon, url: `http://${env.EBB_LISTEN}` };
}

/** Everything that has come out, by where. */
function collector(url: string) {
  const found: { where: string; text: string }[] = [];
  const keep = (where: string, text: string) => void found.push({ where, text });
  async function ask(method: string, path: string, request: { token?: string; type?: string; body?: string } = {}) {
    const { token = PLANTED.token, type = 'application/json', body } = request;
    const answer = await fetch(`${url}${path}`, {
      ...{
        method,
        redirect: 'manual',
        headers: { authorization: `Bearer ${token}`, 'content-type': type, origin: url },
      },
      ...(body !== undefined && { body }),
    });
    const text = await answer.text();
    keep(`${method} ${path}: ${answer.status}`, `${JSON.stringify([...answer.headers])}\n${text}`);
    const isApi = path.startsWith('/api/v1/') && !path.endsWith('openapi.json');
    const problems = isApi
      ? answerProblems(method, path.slice(8), { status: answer.status, body: JSON.parse(text) })
      : [];
    expect(problems).toEqual([]);
    return { status: answer.status, text };
  }
  return { found, keep, ask };
}

const PAGES = [
  ...['/', '/?q=one', '/computes/ep-one', '/computes/ep-two', '/computes/ep-three', '/holds/h-none', '/nowhere'],
  ...['/metrics', '/readyz', '/healthz', '/api/v1/openapi.json', '/api/v1/status', '/api/v1/computes', '/api/v1/fleet'],
  ...[
    '/api/v1/computes/ep-three',
    '/api/v1/decisions',
    '/api/v1/plan',
    '/api/v1/records',
    '/api/v1/holds',
    '/api/v1/freezes',
  ],
];

describeWith('redis-server', 'a daemon with secrets', () => {
  it('shows none of them, wherever one looks and whatever goes wrong', async () => {
    const { platform, metrics, postgres, redisUrl, folder, env, daemon, url } = await startAll();
    const { found, keep, ask } = collector(url);
    const readEverything = async () => {
      for (const path of PAGES) await ask('GET', path);
    };

    // It works.
    await expect
      .poll(
        () =>
          fetch(`${url}/healthz`).then(
            ({ ok }) => ok,
            () => false,
          ),
        WAIT,
      )
      .toBe(true);
    await expect.poll(async () => (await ask('GET', '/readyz')).status, WAIT).toBe(200);
    await expect.poll(async () => (await platform.writes()).length, WAIT).toBeGreaterThan(0);
    await expect.poll(() => [metrics.authorizations.length > 0, postgres.asked.length > 0], WAIT).toEqual([true, true]);
    expect([metrics.authorizations[0], postgres.asked[0]]).toEqual([`Bearer ${PLANTED.prometheus}`, PLANTED.postgres]);
    const hold = { compute: 'ep-three', owner: 'bob', reason: 'x', for_seconds: 60, size: { min_cu: 1, max_cu: 1 } };
    const held = await ask('POST', '/api/v1/holds', { token: PLANTED.annsToken, body: JSON.stringify(hold) });
    expect(JSON.parse(held.text)).toMatchObject({ owner: 'ann' });
    await readEverything();

    // People err.
    await ask('GET', '/', { token: `${PLANTED.token}x` });
    await ask('POST', '/api/v1/holds', { body: `{"compute": "${PLANTED.token}` });
    await ask('POST', '/api/v1/holds', {
      body: JSON.stringify({ ...hold, for_seconds: PLANTED.annsToken, token: PLANTED.token }),
    });
    await ask('POST', '/api/v1/freezes', { type: 'text/plain', body: PLANTED.token });
    await ask('POST', '/api/v1/approve', { body: JSON.stringify({ hash: 'x', owner: 'ann' }) });
    const form = 'application/x-www-form-urlencoded';
    const fields = { for_seconds: '60', reason: 'y', freeze: 'on', token: PLANTED.annsToken };
    for (const more of [{ token: `${PLANTED.annsToken}x` }, { min_cu: PLANTED.annsToken }, { freeze: 'off' }, {}]) {
      const body = new URLSearchParams({ ...fields, ...more }).toString();
      await ask('POST', '/computes/ep-three/holds', { type: form, body });
    }
    await writeFile(
      join(folder, 'policy.yaml'),
      `${POLICIES}\n  - name: ${PLANTED.token.slice(0, 3)}\n    kind: none\n`,
    );
    await writeFile(join(folder, 'tokens'), `ann ${PLANTED.annsToken} !\n`);
    await ask('GET', '/api/v1/status', { token: PLANTED.annsToken });

    // The control API errs, and repeats the key.
    const message = `the key ${PLANTED.apiKey} (Bearer ${PLANTED.apiKey}) may not do that`;
    await platform.control('faults', { kind: 'status', status: 422, method: 'PATCH', message });
    const release = JSON.stringify({ target: 'ep-three', owner: 'ann' });
    await ask('POST', '/api/v1/release', { body: release });
    const body = JSON.stringify({ ...hold, size: { min_cu: 2, max_cu: 2 } });
    await ask('POST', '/api/v1/holds', { body });
    const refusals = () => daemon.lines.filter((line) => line.includes('422')).length;
    await expect.poll(refusals, WAIT).toBeGreaterThan(0);
    await readEverything();
    await platform.clearFaults();
    await platform.control('faults', { kind: 'status', status: 401, message });
    await expect.poll(async () => (await ask('GET', '/readyz')).status, WAIT).toBe(503);
    await readEverything();

    for (const command of [
      ['status'],
      ['history'],
      ['holds'],
      ['explain', 'ep-three'],
      ['plan'],
      ['status', '--url', url],
    ]) {
      const ebb = startEbb([...command, '--json'], { cwd: folder, env });
      await ebb.ended;
      keep(`ebb ${command.join(' ')}`, `${ebb.lines.join('\n')}${ebb.stderr()}`);
    }
    await daemon.kill('SIGTERM');
    keep('the log', daemon.lines.join('\n'));
    keep('standard error', daemon.stderr());
    for (const [name, text] of await storeContents(redisUrl)) keep(`the store: ${name}`, text);
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const { name, parentPath } = entry;
      if (entry.isFile() && name !== 'tokens') keep(`the file ${name}`, await readFile(join(parentPath, name), 'utf8'));
    }

    // What would have told them has come everywhere where it may come.
    const placesOf = (words: string) => found.filter(({ text }) => text.includes(words)).map(({ where }) => where);
    const places = ['GET /: 200', 'GET /computes/ep-three: 200', 'GET /api/v1/decisions: 200', 'the log'];
    expect(placesOf('may not do that')).toEqual(expect.arrayContaining(places));
    expect(placesOf('is wrong')).toContain('the log');
    expect(found.flatMap(({ where, text }) => secretsIn(text).map((name) => `${name} in ${where}`))).toEqual([]);
  });
});

/** Which of the planted are in a text: as they are, encoded, or a hash that would do instead. */
function secretsIn(text: string): string[] {
  return Object.entries(PLANTED).flatMap(([name, value]) => {
    const forms = [value, Buffer.from(value).toString('base64').replace(/=+$/, ''), Buffer.from(value).toString('hex')];
    return forms.some((form) => text.includes(form)) ? [name] : [];
  });
}

/** All that Redis has, uncompressed. */
function storeContents(redisUrl: string): Promise<[string, string][]> {
  return askRedis(redisUrl, async (client) => {
    await client.config('SET', 'rdbcompression', 'no');
    const contents: [string, string][] = [];
    for (const key of await client.keys('*')) {
      contents.push([key, `${key}\n${(await client.dumpBuffer(key))?.toString('latin1')}`]);
    }
    return contents;
  });
}
