import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/adapters/telemetry/redactor.ts';
import { createTelemetry, type TelemetryOptions } from '../../src/adapters/telemetry/telemetry.ts';
import type { LogFields } from '../../src/ports/telemetry.ts';

function loggingInto(options: Partial<TelemetryOptions> = {}) {
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(line) };
  const telemetry = createTelemetry({ level: 'info', version: '1.2.3', secrets: [], destination, ...options });
  return { ...telemetry, written, lines: () => written.map((line) => JSON.parse(line)) };
}

describe('the log', () => {
  it('is one JSON object a line, with ISO time and the name of the level', () => {
    const { log, lines } = loggingInto();
    log.info({ compute: 'ep-one' }, 'resized');
    log.error({ err: new Error('no answer') }, 'gave up');
    expect(lines()).toMatchObject([
      { level: 'info', compute: 'ep-one', msg: 'resized', time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) },
      {
        level: 'error',
        msg: 'gave up',
        err: { type: 'Error', message: 'no answer', stack: expect.stringContaining('log.test') },
      },
    ]);
  });

  it('has no fields named as those of the line, so that its level stays its level', () => {
    const { log, written } = loggingInto();
    // @ts-expect-error The compiler refuses it, unless the type of a value is not known.
    const twice: LogFields = { event: 'ebb.api_limit_learned', level: 2, msg: 'other' };
    log.warn(twice, 'less than the documented rate limit');
    const line = { level: 'warn', msg: 'less than the documented rate limit', level_: 2, msg_: 'other' };
    expect(JSON.parse(written.join(''))).toMatchObject(line);
    expect(written.join('').match(/"level":/g)).toHaveLength(1);
  });

  it('leaves out what is below its level', () => {
    const { log, lines } = loggingInto({ level: 'warn' });
    log.debug({}, 'a');
    log.info({}, 'b');
    log.warn({}, 'c');
    expect(lines().map((line) => line.msg)).toEqual(['c']);
  });

  it('is JSON when piped, and for people on a terminal', () => {
    const run = (terminal: boolean) =>
      spawnSync(
        process.execPath,
        [
          '--import',
          'tsx',
          '--input-type=module',
          '--eval',
          `
        process.stdout.isTTY = ${terminal};
        const { createTelemetry } = await import('./src/adapters/telemetry/telemetry.ts');
        createTelemetry({ level: 'info', version: '1', secrets: ['pl4nted-secret'] }).log.info({ value: 'pl4nted-secret' }, 'hello');
      `,
        ],
        { encoding: 'utf8' },
      );
    expect(JSON.parse(run(false).stdout)).toMatchObject({ msg: 'hello', value: '[redacted]' });
    const readable = run(true).stdout;
    expect(readable).toMatch(/INFO.*hello/);
    expect(readable).not.toContain('pl4nted');
  });
});

describe('the log for people', () => {
  it('has one line for each event, which tells what an error says', () => {
    const { log, written } = loggingInto({ pretty: true });
    log.info({ event: 'ebb.write', compute: 'ep-one', new: { min_cu: 1 } }, 'changed ep-one: size 1-4 → 1 CU');
    log.error({ err: new Error('no answer', { cause: new Error('socket closed') }) }, 'a page failed');
    log.error({ err: new Error('no answer') }, 'it failed: no answer');
    expect(written.map((line) => line.replace(/^\[[\d:]+\] /, ''))).toEqual([
      'INFO: changed ep-one: size 1-4 → 1 CU\n',
      'ERROR: a page failed: no answer: socket closed\n',
      'ERROR: it failed: no answer\n',
    ]);
  });

  it('has all fields and the stack of an error at level debug', () => {
    const { log, written } = loggingInto({ pretty: true, level: 'debug' });
    log.error({ compute: 'ep-one', err: new Error('no answer') }, 'it failed');
    expect(written.join('')).toContain('"compute":"ep-one"');
    expect(written.join('')).toContain('at ');
  });
});

describe('a secret', () => {
  const key = 'napi_pl4nted"key\\1';
  const password = 'pl4nted/päss word';
  const url = `redis://:${encodeURIComponent(password)}@host:6379`;
  const error = Object.assign(new Error(`401 for Bearer ${key}`, { cause: new Error(url) }), {
    request: { headers: { authorization: `Bearer ${key}`, cookie: password } },
  });

  it.each<[string, LogFields, string]>([
    ['in the message', {}, `key ${key} refused`],
    ['in a field', { value: key }, ''],
    ['deep in a field', { a: { b: { c: { d: [{ e: `x${key}y` }] } } } }, ''],
    ['as the name of a field', { [key]: 1 }, ''],
    ['in an error, its cause and its properties', { err: error }, ''],
    ['inside a URL, encoded', { url: `${url}/0` }, `cannot reach ${url}`],
    ['in JSON inside a string', { body: JSON.stringify({ key, password }) }, ''],
  ])('never reaches the log: %s', (_name, fields, message) => {
    for (const pretty of [false, true]) {
      const { log, written } = loggingInto({ secrets: [key, password], pretty, level: 'debug' });
      log.error(fields, message);
      expect(written.join('')).toContain('[redacted]');
      expect(written.join('')).not.toContain('pl4nted');
    }
  });

  it('is known by the name of its field, even if its value is not', () => {
    const { log, lines } = loggingInto();
    const cause = Object.assign(new Error('inner'), { token: 'unknown' });
    log.info(
      {
        key: 'unknown',
        request: { headers: { authorization: 'unknown' } },
        options: { dsn: 'unknown', host: 'seen' },
        accounts: [{ name: 'main', api_key: { of: ['unknown'] } }],
        a: { b: { c: { d: { e: { secret: 'unknown' } } } } },
        err: Object.assign(new Error('outer', { cause }), { config: { password: 'unknown' } }),
      },
      '',
    );
    expect(JSON.stringify(lines())).not.toContain('unknown');
    expect(lines()).toMatchObject([
      {
        key: '[redacted]',
        request: { headers: { authorization: '[redacted]' } },
        options: { dsn: '[redacted]', host: 'seen' },
        accounts: [{ name: 'main', api_key: '[redacted]' }],
        err: { type: 'Error', message: 'outer: inner', stack: expect.stringContaining('log.test') },
      },
    ]);
  });

  it('is looked for in what goes round in circles, too', () => {
    const { log, lines } = loggingInto();
    const socket: Record<string, unknown> = { password: 'unknown' };
    socket.parser = { socket };
    log.warn({ socket, at: new Date(0) }, 'odd');
    expect(JSON.stringify(lines())).not.toContain('unknown');
    expect(lines()).toMatchObject([{ at: '1970-01-01T00:00:00.000Z', msg: 'odd' }]);
  });

  it('that is learnt later is hidden from then on', () => {
    const { log, hide, written } = loggingInto();
    hide('rotated-pl4nted');
    log.info({ value: 'rotated-pl4nted' }, '');
    expect(written.join('')).not.toContain('pl4nted');
  });

  it('never survives in a text, whatever surrounds it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 4 }), { minLength: 1, maxLength: 4 }),
        fc.string(),
        fc.string(),
        (secrets, before, after) => {
          const { redact } = createRedactor(secrets);
          for (const secret of secrets) {
            const pieces = redact(before + secret + after).split('[redacted]');
            expect(pieces.length).toBeGreaterThan(1);
            for (const piece of pieces) for (const other of secrets) expect(piece).not.toContain(other);
          }
        },
      ),
    );
  });
});
