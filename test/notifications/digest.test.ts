import { describe, expect, it } from 'vitest';
import { createToldMessages } from '../../src/app/notifications/told.ts';
import { createWeeklyDigest } from '../../src/app/usage/weekly-digest.ts';
import { digestOf, digestWeek } from '../../src/domain/notifications/digest.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import type { Store } from '../../src/ports/store.ts';
import { aHold, at, currentRules } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const weekAt = (now: string) => {
  const week = digestWeek(at(now));
  return week && [isoInstant(week.fromMs), isoInstant(week.toMs)];
};

describe('the week of a digest', () => {
  it.each([
    ['2026-11-30T08:00:00Z', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00Z'],
    ['2026-12-02T08:00:00Z', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00Z'],
  ])('at %s is that from %s to %s', (now, from, to) => {
    expect(weekAt(now)).toEqual([from, to]);
  });

  it.each(['2026-11-30T07:59:59Z', '2026-12-02T08:00:01Z', '2026-12-04T18:43:16Z'])('is over at %s', (now) => {
    expect(weekAt(now)).toBeUndefined();
  });
});

describe('a digest', () => {
  const week = { fromMs: at('2026-11-23T00:00:00Z'), toMs: at('2026-11-30T00:00:00Z') };

  it('tells what changed, what it cost, and what enforcing would have saved', () => {
    const known = {
      ...{ owner: 'team-web', changes: 12, restarts: 1, computes: 3 },
      ...{ cost: { cuHours: 31.24, usd: 4.998, unknownHours: 3 }, wouldHaveSaved: { low: -0.5, high: 8 } },
    };
    expect(digestOf(known, week)).toEqual({
      ...{ id: 'digest:team-web:2026-11-23', kind: 'digest', owner: 'team-web', atMs: at('2026-11-30T00:00:00Z') },
      text:
        'week of 2026-11-23, team-web: 12 changes and 1 restart without a change of 3 computes; cost: 31.2 CU-hours ($5.00), without 3 hours ' +
        'of unknown usage; enforcing in the last two weeks: 0.5 CU-hours more to 8.0 CU-hours saved',
    });
  });

  it('says what is not known', () => {
    const nothing = { owner: 'team-api', changes: 0, restarts: 0, computes: 0 };
    expect(digestOf(nothing, week).text).toBe(
      'week of 2026-11-23, team-api: nothing was changed; cost: unknown; saved: unknown',
    );
    // Changes restart computes, too: no restart is not what happened.
    expect(digestOf({ ...nothing, changes: 12, computes: 3 }, week).text).toContain(
      'team-api: 12 changes of 3 computes; ',
    );
    const cost = { cuHours: 1, usd: undefined, unknownHours: 0 };
    expect(digestOf({ ...nothing, cost }, week).text).toContain('cost: 1.0 CU-hours (price unknown); ');
  });
});

it('a digest is not sent again by a daemon that starts after the store has lost its data', async () => {
  const nowMs = at('2026-11-30T09:00:00Z');
  const empty = () => createMemoryStore(createSteppedClock(nowMs, () => false));
  const store = empty();
  const rules = currentRules();
  const url = { from: 'text', text: 'http://127.0.0.1/' } as const;
  const receiver: Receiver = { ...{ name: 'ops', to: 'webhook', allowedOrigins: [], file: 'ebb.yaml' }, url };
  rules.current = { ...rules.current, notify: { receivers: [receiver] } };
  const told = async (of: Store) => {
    const audit: HistoryEntry = {
      ...{ atMs: at('2026-11-25T08:00:00Z'), projectId: 'p', computeId: 'ep-one', owner: 'team-web' },
      ...{ kind: 'write', setHash: '', reasons: [] },
    };
    await of.putHold(aHold(), { audit });
    const daemon = createWeeklyDigest({ store: of, clock: { now: () => nowMs }, rules });
    await daemon(() => ({ organizations: [], ownerOf: () => 'team-web', months: [] }));
    const entries = await of.outbox({ receiver: 'ops', state: 'waiting', limit: 9 });
    return entries.map(({ id }) => id);
  };
  const another = createToldMessages(store);
  expect(await told(store)).toEqual(['digest:team-web:2026-11-23>ops']);
  await another.learn();
  Object.assign(store, empty());
  await another.learn();
  expect(await told(store)).toEqual([]);
});
