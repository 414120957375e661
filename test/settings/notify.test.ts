import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readSettings, secretsOf } from '../../src/settings/settings.ts';
import type { Environment } from '../../src/settings/sources.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-notify-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function read(yaml: string, env: Environment = {}) {
  writeFileSync(join(cwd, 'ebb.yaml'), yaml);
  return readSettings({ env, cwd });
}

function problemsOf(yaml: string) {
  const result = read(yaml);
  return result.ok ? [] : result.problems;
}

describe('receivers in ebb.yaml', () => {
  it('are read with their owners and kinds; secrets are only named', () => {
    const yaml = `
notify_allowed_origins: [https://hooks.example]
notify_before: 15m
status_url: https://ebb.example/
notify:
  web: { to: webhook, url: https://hooks.example/ebb, secret_env: EBB_NOTIFY_SECRET_WEB, owners: [team-web], kinds: [change_coming, digest], per_hour: 5 }
  ops: { to: slack, url_env: EBB_NOTIFY_URL }
`;
    const env = {
      EBB_NOTIFY_SECRET_WEB: 'of-the-web-team',
      EBB_NOTIFY_URL: 'https://hooks.slack.com/services/T0/B0/x',
    };
    const result = read(yaml, env);
    if (!result.ok) throw new Error(result.problems.join('\n'));
    const allowedOrigins = ['https://hooks.example'];
    expect(result.settings.notify).toEqual({
      beforeMs: 900_000,
      statusUrl: 'https://ebb.example',
      receivers: [
        {
          ...{
            name: 'web',
            to: 'webhook',
            allowedOrigins,
            file: 'ebb.yaml',
            owners: ['team-web'],
            kinds: ['change_coming', 'digest'],
            perHour: 5,
          },
          url: { from: 'text', text: 'https://hooks.example/ebb' },
          secret: { from: 'variable', name: 'EBB_NOTIFY_SECRET_WEB' },
        },
        {
          name: 'ops',
          to: 'slack',
          allowedOrigins,
          file: 'ebb.yaml',
          url: { from: 'variable', name: 'EBB_NOTIFY_URL' },
        },
      ],
    });
    expect(JSON.stringify(result.settings)).not.toContain('of-the-web-team');
    expect(secretsOf(result.settings)).toEqual(expect.arrayContaining(Object.values(env)));
  });

  it('may be only where the settings allow, or on this machine', () => {
    const at = (url: string) => `notify: { web: { to: webhook, url: "${url}", secret_env: EBB_NOTIFY_SECRET } }\n`;
    expect(problemsOf(at('http://127.0.0.1:9000/ebb'))).toEqual([]);
    expect(problemsOf(at('https://elsewhere.example/with/a/token'))).toEqual([
      'ebb.yaml:1:1: the receiver web: https://elsewhere.example is not allowed: add it to notify_allowed_origins',
    ]);
    expect(
      problemsOf(`notify_allowed_origins: [https://elsewhere.example]\n${at('https://elsewhere.example/x')}`),
    ).toEqual([]);
  });

  it.each([
    ['a webhook without a signature', '{ to: webhook, url: http://127.0.0.1/x }', 'secret_env or secret_file'],
    ['two places', '{ to: slack, url_env: EBB_NOTIFY_URL, url_file: u }', 'url, url_env or url_file'],
    ['the URL of Slack in the file', '{ to: slack, url: https://hooks.slack.com/services/x }', 'is a secret for Slack'],
    ['a variable of something else', '{ to: slack, url_env: EBB_API_KEY }', 'EBB_NOTIFY_URL_ and more capitals'],
    ['a kind that there is not', '{ to: slack, url_env: EBB_NOTIFY_URL, kinds: [frozen] }', 'use change_coming'],
    ['no number', '{ to: slack, url_env: EBB_NOTIFY_URL, per_hour: 0 }', 'a whole number from 1 to 1000'],
    ['a slip', '{ to: slack, url_env: EBB_NOTIFY_URL, kind: [freeze] }', 'did you mean "kinds"'],
  ])('are refused with %s', (_, receiver, message) => {
    const problems = problemsOf(`notify: { ops: ${receiver} }\n`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
    expect(problems[0]).toMatch(/^ebb\.yaml:1:/);
    expect(problems[0]).not.toContain('/services/x');
  });
});

describe('the webhook of the audit in ebb.yaml', () => {
  const webhook = '{ url: "https://logs.example/ebb", secret_env: EBB_NOTIFY_SECRET_AUDIT }';

  it('is a receiver of its own, also beside a file', () => {
    const result = read(
      `notify_allowed_origins: [https://logs.example]\naudit: { file: a.jsonl, webhook: ${webhook} }\n`,
    );
    if (!result.ok) throw new Error(result.problems.join('\n'));
    expect(result.settings.audit).toEqual({
      file: join(cwd, 'a.jsonl'),
      webhook: {
        ...{ name: 'audit', to: 'webhook', file: 'ebb.yaml', allowedOrigins: ['https://logs.example'] },
        url: { from: 'text', text: 'https://logs.example/ebb' },
        secret: { from: 'variable', name: 'EBB_NOTIFY_SECRET_AUDIT' },
      },
    });
    expect(result.settings.notify.receivers).toEqual([]);
  });

  it.each([
    ['nothing', '{}', 'must have file or webhook'],
    ['no signature', '{ webhook: { url: http://127.0.0.1/x } }', 'secret_env or secret_file'],
    ['no place', '{ webhook: { secret_env: EBB_NOTIFY_SECRET } }', 'url, url_env or url_file'],
    ['another place than is allowed', `{ webhook: ${webhook} }`, 'https://logs.example is not allowed'],
    ['a slip', '{ webhook: { urls: http://127.0.0.1/x, secret_env: EBB_NOTIFY_SECRET } }', 'did you mean "url"'],
  ])('is refused with %s', (_, audit, message) => {
    const problems = problemsOf(`audit: ${audit}\n`);
    expect(problems.join('\n')).toContain(message);
    expect(problems[0]).toMatch(/^ebb\.yaml:1:/);
  });
});
