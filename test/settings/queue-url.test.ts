import { expect, it } from 'vitest';
import { parseQueueUrl } from '../../src/settings/addresses.ts';

it.each([
  'redis+sentinel://h1:26379,h2/main',
  'rediss+sentinel://h1/main/3',
  'redis+cluster://h1:7000,h2:7001',
  'rediss+cluster://h1',
])('takes %s for a Redis', (text) => {
  expect(parseQueueUrl(text)).toMatchObject({ ok: true, value: { kind: 'redis', shown: text, passwords: [] } });
});

it('hides the passwords of Redis and of its Sentinels, as written and as decoded', () => {
  const parsed = parseQueueUrl('redis+sentinel://app:p%40ss@h1,h2/main?sentinel_username=s&sentinel_password=t%2Bu');
  if (!parsed.ok) throw new Error(parsed.problem);
  expect(parsed.value.shown).toBe('redis+sentinel://h1,h2/main?sentinel_username=s&sentinel_password=[redacted]');
  expect(parsed.value.passwords.map((each) => each.reveal()).toSorted()).toEqual(['p%40ss', 'p@ss', 't%2Bu', 't+u']);
});

it('asks for the name that Sentinels know the primary by', () => {
  for (const text of ['redis+sentinel://u:s/x@h1,h2', 'redis+sentinel://h1/', 'redis+sentinel://h1/?a=b/c']) {
    const parsed = parseQueueUrl(text);
    expect(parsed).toMatchObject({
      ok: false,
      problem: expect.stringContaining('redis+sentinel://HOST:PORT,HOST:PORT/NAME'),
    });
    expect(JSON.stringify(parsed)).not.toContain('s/x');
  }
});
