import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { Ajv } from 'ajv';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createSender, Message, signatureOf } from '../../src/adapters/notifications/sender.ts';
import { messageOf, type Receiver } from '../../src/domain/notifications/notification.ts';
import { destinationRefused } from '../../src/settings/notify-schema.ts';
import { listenLocally } from '../support/local-server.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A receiver that answers so, or not at all. */
async function receiving(status: number | 'never', headers: Record<string, string> = {}) {
  const got: { path: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    got.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(parts).toString() });
    if (status !== 'never') response.writeHead(status, headers).end('thanks');
  });
  const { origin, close } = await listenLocally(server);
  closing.push(close);
  return { got, url: `${origin}/hook?team=web` };
}

const SECRETS: Readonly<Record<string, string>> = { EBB_NOTIFY_SECRET: 'of-this-receiver' };
const NEVER = new AbortController().signal;

function senderWith(secrets = SECRETS, timeoutMs = 10_000) {
  const sender = createSender({
    readSecret: async (place) => {
      const value = place.from === 'variable' ? secrets[place.name] : undefined;
      if (value === undefined) throw new Error('the variable EBB_NOTIFY_SECRET is not set');
      return value;
    },
    refusedDestination: destinationRefused,
    nowMs: () => 1_700_000_000_500,
    timeoutMs,
  });
  closing.push(() => sender.close());
  return sender;
}

const webhook = (url: string): Receiver => ({
  ...{ name: 'ops', to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], url: { from: 'text', text: url } },
  secret: { from: 'variable', name: 'EBB_NOTIFY_SECRET' },
});
const MESSAGE = { id: 'manual_change:ep-1:5', body: '{"text":"größer"}' };

describe('a signature', () => {
  it('is the one of the published example of Standard Webhooks', () => {
    const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}', atMs: 1_614_265_330_000 };
    expect(signatureOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', message)).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });
});

describe('sending', () => {
  it('posts the JSON to a webhook as it is, with its id and a signature', async () => {
    const { got, url } = await receiving(204);
    expect(await senderWith().send(webhook(url), MESSAGE, NEVER)).toEqual({ ok: true });
    const expected = signatureOf('of-this-receiver', { ...MESSAGE, atMs: 1_700_000_000_500 });
    expect(got).toMatchObject([
      { path: '/hook?team=web', body: MESSAGE.body, headers: { ...expected, 'content-type': 'application/json' } },
    ]);
    expect(JSON.stringify(got)).not.toContain('of-this-receiver');
  });

  it('gives Slack the sentence and the command, unable to be taken for marks of its own', async () => {
    const { got, url } = await receiving(200);
    const place = { projectId: 'p-1', projectName: 'web <!channel>', computeId: 'ep-1', owner: 'team-web' };
    const body = JSON.stringify(
      messageOf({
        id: 'x',
        kind: 'change_coming',
        atMs: 0,
        text: '4 → 2 CU & more',
        command: 'ebb hold ep-1',
        ...place,
      }),
    );
    const slack: Receiver = {
      name: 'ops',
      to: 'slack',
      file: 'ebb.yaml',
      allowedOrigins: [],
      url: { from: 'variable', name: 'U' },
    };
    expect(await senderWith({ U: url }).send(slack, { id: 'x', body }, NEVER)).toEqual({ ok: true });
    expect(JSON.parse(got[0]?.body ?? '')).toEqual({
      text: '4 → 2 CU &amp; more (web &lt;!channel&gt; / ep-1, owner team-web)\n`ebb hold ep-1`',
    });
    expect(got[0]?.headers).not.toHaveProperty('webhook-signature');
  });

  it.each([
    ['each of 30 that restart', 30, /\nall that restart: (?:ep-\d+, ){29}ep-29$/],
    ['those of 500 that have room, and the number of the others', 500, /\nrestart: (?:ep-\d+, ){388}and 212 more$/],
    ['no list where the sentence names each', 8, /^[^\n]*$/],
  ])('gives Slack %s', async (_, count, expected) => {
    const { got, url } = await receiving(200);
    const ids = Array.from({ length: count }, (_one, index) => `ep-${index}`);
    const change = { projectId: 'p-1', atMs: 0, policy: 'nights', from: {}, to: {} };
    const restarts = ids.map((computeId) => ({ ...change, computeId, disconnects: true }));
    const list = [...restarts, { ...change, computeId: 'ep-sleeping', disconnects: false }];
    const counts = { computes: 601, raised: 0, lowered: 601, disconnecting: count === 500 ? 600 : count };
    const changes = { ...counts, fromMs: 0, toMs: 0, list, notListed: 0 };
    const text = `restart (${ids.slice(0, 8).join(', ')}, and more)`;
    const body = JSON.stringify(messageOf({ id: 'x', kind: 'change_coming', atMs: 0, text, changes }));
    await senderWith().send({ ...webhook(url), to: 'slack' }, { id: 'x', body }, NEVER);
    const sent = JSON.parse(got[0]?.body ?? '').text;
    expect(sent).toMatch(expected);
    expect(sent).not.toContain('ep-sleeping');
    expect(sent.length).toBeLessThan(3200);
  });

  it('gives Slack the sentence of a message that an earlier version has stored', async () => {
    const { got, url } = await receiving(200);
    const slack: Receiver = { ...webhook(url), to: 'slack' };
    const changes = { ...{ computes: 9, raised: 9, lowered: 0, disconnecting: 9 }, from: 'x', to: 'x' };
    const body = JSON.stringify({ ...messageOf({ id: 'x', kind: 'change_coming', atMs: 0, text: 'nine' }), changes });
    await senderWith().send(slack, { id: 'x', body }, NEVER);
    expect(JSON.parse(got[0]?.body ?? '')).toEqual({ text: 'nine' });
  });

  it.each<[number, boolean]>([
    [500, false],
    [503, false],
    [429, false],
    [408, false],
    [400, true],
    [401, true],
    [404, true],
  ])('answered %i', async (status, isRefused) => {
    const { url } = await receiving(status);
    expect(await senderWith().send(webhook(url), MESSAGE, NEVER)).toEqual({
      ...{ ok: false, isRefused, message: `answered ${status}` },
    });
  });

  it('follows no redirect', async () => {
    const other = await receiving(200);
    const { url } = await receiving(307, { location: other.url });
    expect(await senderWith().send(webhook(url), MESSAGE, NEVER)).toEqual({
      ...{ ok: false, isRefused: true, message: 'answered 307' },
    });
    expect(other.got).toEqual([]);
  });

  it('does not wait for ever, and ends when it is told to', async () => {
    const { url } = await receiving('never');
    const failure = { ok: false, isRefused: false, message: 'no answer in time' };
    expect(await senderWith(SECRETS, 50).send(webhook(url), MESSAGE, NEVER)).toEqual(failure);
    expect(await senderWith().send(webhook(url), MESSAGE, AbortSignal.timeout(50))).toEqual(failure);
  });

  it('says why it could not, without a URL or a secret', async () => {
    const { url } = await receiving(200);
    const { port } = new URL(url);
    for (const close of closing.splice(0)) await close();
    const gone = await senderWith().send(webhook(url), MESSAGE, NEVER);
    expect(gone).toEqual({ ok: false, isRefused: false, message: 'ECONNREFUSED' });
    expect(JSON.stringify(gone)).not.toContain(port);
    expect(await senderWith({}).send(webhook(url), MESSAGE, NEVER)).toEqual({
      ...{ ok: false, isRefused: false, message: 'the variable EBB_NOTIFY_SECRET is not set' },
    });
    const elsewhere = await senderWith().send(webhook('https://elsewhere.example/secret-path'), MESSAGE, NEVER);
    expect(elsewhere).toEqual({
      ...{ ok: false, isRefused: true },
      message: 'https://elsewhere.example is not allowed: add it to notify_allowed_origins',
    });
  });
});

describe('the JSON Schema of a message', () => {
  it('that is committed is the one that the code generates (npx tsx scripts/write-schemas.ts)', () => {
    const committed = JSON.parse(readFileSync('schema/notification.schema.json', 'utf8'));
    expect(committed).toEqual(JSON.parse(JSON.stringify(z.toJSONSchema(Message, { target: 'draft-7' }))));
    const validate = new Ajv({ strict: false }).compile(committed);
    expect(
      validate(messageOf({ id: 'x', kind: 'freeze', atMs: 0, text: 'frozen' })),
      JSON.stringify(validate.errors),
    ).toBe(true);
    const change = { projectId: 'p-1', computeId: 'ep-1', atMs: 0, policy: 'nights', disconnects: true };
    const settings = { from: { minCu: 1, maxCu: 4 }, to: { minCu: 0.25, maxCu: 1 } };
    const restart = { from: {}, to: {} };
    const list = [settings, restart].map((one) => ({ ...change, ...one }));
    const counts = { computes: 2, raised: 0, lowered: 1, disconnecting: 2, fromMs: 0, toMs: 0 };
    const changes = { ...counts, list, notListed: 0 };
    const coming = messageOf({ id: 'x', kind: 'change_coming', atMs: 0, text: 'two', changes });
    expect(validate(coming), JSON.stringify(validate.errors)).toBe(true);
    // A receiver may still have messages of a release without links and counts.
    const link = messageOf({ id: 'x', kind: 'freeze', atMs: 0, text: 'frozen', owner: 'a&b' }, 'https://ebb.example');
    expect([validate(link), link.link]).toEqual([true, 'https://ebb.example/?owner=a%26b']);
    expect(validate({ id: 'x', kind: 'thaw' })).toBe(false);
  });
});
