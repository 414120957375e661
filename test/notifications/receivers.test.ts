import { describe, expect, it } from 'vitest';
import { type Receiver, receiversOf } from '../../src/domain/notifications/notification.ts';

const at = (name: string, takes: Pick<Receiver, 'owners' | 'kinds'> = {}): Receiver => ({
  ...{
    name,
    to: 'webhook',
    allowedOrigins: [],
    file: 'ebb.yaml',
    url: { from: 'text', text: `https://hooks.example/${name}` },
  },
  ...takes,
});

const RECEIVERS = [
  at('ops'),
  at('web', { owners: ['team-web'] }),
  at('web-changes', { owners: ['team-web'], kinds: ['change_coming'] }),
  at('digests', { kinds: ['digest'] }),
];

const namesOf = (notification: Parameters<typeof receiversOf>[1]) =>
  receiversOf(RECEIVERS, notification).map(({ name }) => name);

describe('the receivers of a notification', () => {
  it('are those that take its owner and its kind', () => {
    expect(namesOf({ kind: 'change_coming', owner: 'team-web' })).toEqual(['ops', 'web', 'web-changes']);
    expect(namesOf({ kind: 'degraded', owner: 'team-web' })).toEqual(['ops', 'web']);
    expect(namesOf({ kind: 'degraded', owner: 'team-api' })).toEqual(['ops']);
  });

  it('are not those that were told of it before it happened', () => {
    const given = { kind: 'connections_dropped', owner: 'team-web', receivers: ['digests'] } as const;
    expect(namesOf(given)).toEqual(['ops', 'web', 'digests']);
    expect(namesOf({ ...given, toldBefore: ['ops', 'digests'] })).toEqual(['web']);
  });

  it('are none of an owner where it concerns the whole fleet', () => {
    expect(namesOf({ kind: 'freeze' })).toEqual(['ops']);
    expect(namesOf({ kind: 'digest' })).toEqual(['ops', 'digests']);
  });

  it('include those that a policy names, whatever else they take, once each', () => {
    expect(namesOf({ kind: 'budget_step', owner: 'team-api', receivers: ['digests', 'ops'] })).toEqual([
      'ops',
      'digests',
    ]);
  });
});
