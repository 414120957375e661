import { describe, expect, it } from 'vitest';
import type { ClientSample, SampledSession } from '../../../src/domain/awake/client-activity.ts';
import { keptAwakeMs, nameClients, sessionFacts } from '../../../src/domain/awake/clients.ts';

const FROM = Date.parse('2026-03-02T12:00:00Z');
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const timeoutMs = 5 * MINUTE;

function session(fields: Partial<SampledSession> = {}): SampledSession {
  const stateSinceMs = fields.stateSinceMs ?? FROM;
  return {
    ...{ pid: 1, startedAtMs: FROM - 60 * MINUTE, user: 'app', application: 'web', kind: 'client', state: 'idle' },
    ...{ queryStartedAtMs: stateSinceMs, stateSinceMs, query: 'SELECT ?' },
    ...fields,
  };
}

/** Samples every 10 s for 15 min. */
function samples(at: (atMs: number) => Omit<ClientSample, 'atMs'>): ClientSample[] {
  return Array.from({ length: 91 }, (_, index) => {
    const atMs = FROM + index * 10 * SECOND;
    return { atMs, ...at(atMs) };
  });
}

const named = (all: readonly ClientSample[], texts: ReadonlyMap<string, string> = new Map()) =>
  nameClients({ samples: all, texts, timeoutMs });

/** The calls in each interval of a client that comes every `periodMs`. */
const calls = (periodMs: number, each: number) => (atMs: number) => {
  const count = Math.floor((atMs - FROM) / periodMs) - Math.floor((atMs - 10 * SECOND - FROM) / periodMs);
  return count > 0 ? [{ user: 'app', queryId: '7', calls: each * count }] : [];
};

describe('the clients of a Postgres', () => {
  it('are not those that are only connected', () => {
    expect(
      named(samples(() => ({ sessions: [session({ stateSinceMs: FROM - 6 * MINUTE, query: 'LISTEN jobs' })] }))),
    ).toEqual([]);
  });

  it('have the period at which a session asks', () => {
    const every4 = samples((atMs) => ({
      sessions: [session({ stateSinceMs: FROM + Math.floor((atMs - FROM) / (4 * MINUTE)) * 4 * MINUTE })],
    }));
    expect(named(every4)).toEqual([
      {
        ...{ kind: 'periodic', user: 'app', application: 'web', queries: [{ text: 'SELECT ?' }], periodMs: 4 * MINUTE },
        ...{ visits: 4, share: 1, confidence: 'high' },
      },
    ]);
  });

  it.each([
    ['a minute', MINUTE],
    ['twelve seconds', 12 * SECOND],
    ['two seconds', 2 * SECOND],
  ])('have the period of calls of %s, though no sample meets a session', (_name, periodMs) => {
    const counted = samples((atMs) => ({ sessions: [], calls: calls(periodMs, 1)(atMs) }));
    const [client, ...others] = named(counted, new Map([['7', 'SELECT a FROM b']]));
    expect(others).toEqual([]);
    expect(client).toMatchObject({
      kind: 'periodic',
      user: 'app',
      queries: [{ queryId: '7', text: 'SELECT a FROM b' }],
    });
    expect(Math.abs((client?.periodMs ?? 0) / periodMs - 1)).toBeLessThan(0.05);
  });

  it('come often where samples without counts see them nearly each time', () => {
    const every7 = samples((atMs) => ({
      sessions: [session({ stateSinceMs: FROM + Math.floor((atMs - FROM) / (7 * SECOND)) * 7 * SECOND })],
    }));
    const [client] = named(every7);
    expect(client).toMatchObject({ kind: 'frequent', periodMs: expect.closeTo(10 * SECOND, -4) });
  });

  it('are two where a pool and a health check of one role ask the same', () => {
    const [pool, check] = [calls(45 * SECOND, 4), calls(77 * SECOND, 1)];
    const counted = samples((atMs) => {
      const all = [...pool(atMs), ...check(atMs)];
      const count = all.reduce((sum, one) => sum + one.calls, 0);
      return { sessions: [], calls: count > 0 ? [{ user: 'app', queryId: '7', calls: count }] : [] };
    });
    const periods = named(counted, new Map([['7', 'SELECT ?']])).map(({ periodMs = 0 }) =>
      Math.round(periodMs / SECOND),
    );
    expect(periods.toSorted((a, b) => a - b)).toEqual([expect.closeTo(45, -1), expect.closeTo(77, -1)]);
  });

  it('hold transactions open, or replicate', () => {
    const open = session({ state: 'idle_in_transaction', transactionStartedAtMs: FROM - MINUTE, query: 'SELECT x' });
    const feed = session({ pid: 2, kind: 'replication', state: 'active', user: 'feed', application: '', query: '' });
    const all = samples(() => ({ sessions: [open, feed] }));
    expect(named(all).map(({ kind, user, share }) => [kind, user, share])).toEqual([
      ['open_transaction', 'app', 1],
      ['replication', 'feed', 1],
    ]);
    expect(sessionFacts(all)).toEqual({ idleInTransactionMs: 16 * MINUTE, replicationConnections: 1 });
  });

  it('come at no fixed interval where they do', () => {
    const instants = [0, 70, 95, 300, 340, 700, 820].map((seconds) => FROM + seconds * SECOND);
    const all = samples((atMs) => {
      const last = instants.findLast((instant) => instant <= atMs) ?? FROM;
      return { sessions: [session({ stateSinceMs: last })], calls: [] };
    });
    expect(named(all)).toMatchObject([{ kind: 'irregular', visits: 7 }]);
  });
});

describe('what the samples cost', () => {
  const visitedUntil = (untilMs: number) =>
    samples((atMs) => ({ sessions: [session({ stateSinceMs: Math.min(atMs, untilMs) })] }));
  const kept = (all: readonly ClientSample[], neverSuspends = false) =>
    keptAwakeMs({ samples: all, texts: new Map(), timeoutMs, neverSuspends });

  it('is the time awake for which there was nobody else', () => {
    expect(kept(visitedUntil(FROM + 60 * MINUTE))).toBe(0);
    expect(kept(visitedUntil(FROM + 5 * MINUTE))).toBe(10 * MINUTE);
    expect(kept(visitedUntil(FROM + 5 * MINUTE), true)).toBe(0);
  });
});
