import { describe, expect, it } from 'vitest';
import { redisPlace } from '../../src/adapters/engine/redis-place.ts';

describe('a URL of Redis', () => {
  it('names Sentinels, the master, the database and both accounts', () => {
    const url =
      'redis+sentinel://app:p%40ss:@w@h1:26380,h2,[::1]:5/my%20master/3?sentinel_username=s&sentinel_password=t%2Bu';
    expect(redisPlace(url)).toEqual({
      kind: 'sentinel',
      sentinels: [
        { host: 'h1', port: 26380 },
        { host: 'h2', port: 26379 },
        { host: '::1', port: 5 },
      ],
      name: 'my master',
      db: 3,
      username: 'app',
      password: 'p@ss:@w',
      sentinelUsername: 's',
      sentinelPassword: 't+u',
      tls: false,
      address: 'h1:26380,h2:26379,::1:5/my master',
    });
  });

  it('names nodes of a Cluster', () => {
    expect(redisPlace('rediss+cluster://:100%@h1,h2:7000')).toEqual({
      kind: 'cluster',
      nodes: [
        { host: 'h1', port: 6379 },
        { host: 'h2', port: 7000 },
      ],
      password: '100%',
      tls: true,
      address: 'h1:6379,h2:7000',
    });
  });

  it('is none without what it needs', () => {
    for (const url of [
      'redis+sentinel://h1,h2',
      'redis+sentinel:///mymaster',
      'redis+sentinel://h1/mymaster/x',
      'redis+cluster://h1/2',
      'redis+cluster://h1:port',
      'redis+cluster://',
      'redis+cluster://h1,,h2',
      'redis://h1,h2:x',
    ]) {
      expect([url, redisPlace(url)]).toEqual([url, undefined]);
    }
  });
});
