import { describe, expect, it } from 'vitest';
import { isLoopbackHost } from '../../src/common/loopback.ts';

describe('a host is this machine', () => {
  it.each(['localhost', 'LocalHost', '::1', '[::1]', '127.0.0.1', '127.255.249.199', '127.200.99.9'])('%s', (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  });
});

describe('a host may be another machine', () => {
  it.each([
    ...[
      '',
      'localhost.example.com',
      'my-localhost',
      '::2',
      '[::1',
      '::1]',
      'x[::1]',
      '[::1]x',
      '[10.0.0.1]',
      'local[host]',
      '[local]host',
    ],
    ...['128.0.0.1', '0127.0.0.1', '127.0.0', '127.0.0.1.1', '127.0.0.256', '127.0.0.260', '127.0.0.300', '127.0.0.a'],
    ...['127.0.0.1.example.com', 'x127.0.0.1', '127x0.0.1', '127.0.0.1000', '127.0.0.2a1', '127.0.0.25a', '127.0.0.1a'],
  ])('%j', (host) => {
    expect(isLoopbackHost(host)).toBe(false);
  });
});
