import { describe, expect, it } from 'vitest';
import { type AwakeCause, type AwakeFacts, findCause } from '../../../src/domain/awake/causes.ts';
import { awakeHistory } from '../../../src/domain/awake/intervals.ts';
import { createOperationLog } from '../../../src/domain/awake/operation-log.ts';
import { seededRandom } from '../../../src/domain/random.ts';
import { aCompute } from '../../support/builders.ts';
import {
  type Activity,
  between,
  cron,
  DAY,
  exponential,
  HOUR,
  inHours,
  logNormal,
  MINUTE,
  oneOf,
  type Random,
  SECOND,
  simulate,
  visits,
} from '../../support/demand.ts';
import { isLong } from '../../support/seed.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN = { fromMs: TO - 28 * DAY, toMs: TO };

/** EBB_LONG=1 draws more. */
const SEEDS = Array.from({ length: isLong ? 20 : 1 }, (_, index) => index + 1);

interface Case {
  kind: string;
  /** Any of these is right; none: nothing may be found. */
  causes: AwakeCause[];
  periodMs?: number;
  facts: AwakeFacts;
}

interface Wanted extends Omit<Case, 'facts'> {
  activities: Activity[];
  timeoutSeconds?: number;
  maxCu?: number;
  rest?: Partial<AwakeFacts>;
}

const office = (random: Random) =>
  inHours(
    visits(
      SPAN,
      () => logNormal(random, 4 * MINUTE, 1),
      () => between(random, 1, 40) * MINUTE,
      0.5,
    ),
    8,
    17,
  );
const rare = (random: Random) =>
  visits(
    SPAN,
    () => exponential(random, 30 * HOUR),
    () => between(random, 1, 30) * MINUTE,
  );
const batch = (random: Random): Activity[] =>
  Array.from({ length: 27 }, (_, day) => {
    const fromMs = SPAN.fromMs + day * DAY + 2 * HOUR + random() * 5 * MINUTE;
    return { fromMs, toMs: fromMs + between(random, 40, 80) * MINUTE, cu: 2 };
  });
const short = (random: Random) =>
  visits(
    SPAN,
    () => exponential(random, between(random, 20, 45) * MINUTE),
    () => between(random, 1, 20) * SECOND,
  );
const probe = (random: Random, periodMs: number) => cron(random, SPAN, periodMs, between(random, 1, 10) * SECOND);
const drifting = (random: Random, periodMs: number) =>
  visits(
    SPAN,
    () => periodMs * between(random, 0.995, 1.005),
    () => between(random, 0.1, 1) * SECOND,
  );
const always = (fromMs = SPAN.fromMs): Activity[] => [{ fromMs, toMs: SPAN.toMs, cu: 0.25 }];
const busy = (random: Random): Activity[] =>
  Array.from({ length: 28 * 24 }, (_, hour) => {
    const fromMs = SPAN.fromMs + hour * HOUR;
    return { fromMs, toMs: fromMs + HOUR, cu: between(random, 0.3, 1.8) };
  });
const poller = (random: Random) =>
  visits(
    SPAN,
    () => between(random, 20, 30) * SECOND,
    () => SECOND,
  );
const period = (random: Random) => oneOf(random, [10, 12, 15, 20, 30, 45, 60, 90, 120]) * MINUTE;

/** Each kind with how many of the 300 computes are of it. */
const KINDS: readonly [string, number, (random: Random) => Omit<Wanted, 'kind'>][] = [
  ['never', 30, (random) => ({ causes: ['never_suspends'], activities: office(random), timeoutSeconds: -1 })],
  [
    'cron',
    35,
    (random) => {
      const periodMs = period(random);
      return { causes: ['periodic_probe'], periodMs, activities: probe(random, periodMs) };
    },
  ],
  [
    'drifting loop',
    15,
    (random) => {
      const periodMs = period(random);
      return { causes: ['periodic_probe'], periodMs, activities: drifting(random, periodMs) };
    },
  ],
  ['poller', 10, (random) => ({ causes: ['periodic_probe'], periodMs: 25 * SECOND, activities: poller(random) })],
  ['short visits', 40, (random) => ({ causes: ['short_visits'], activities: short(random) })],
  ['busy', 30, (random) => ({ causes: ['busy'], activities: busy(random) })],
  [
    'open transaction',
    20,
    (random) => {
      const sinceMs = SPAN.toMs - between(random, 2, 25) * DAY;
      const openMs = SPAN.toMs - sinceMs;
      const sessions = { replicationConnections: 0, idleInTransactionMs: openMs };
      const asked = random() < 0.75 ? { sessions } : {};
      return { causes: ['open_transaction'], activities: [...rare(random), ...always(sinceMs)], rest: asked };
    },
  ],
  [
    'replication',
    15,
    (random) => ({
      causes: ['replication'],
      activities: always(),
      rest: random() < 0.75 ? { sessions: { replicationConnections: 1 } } : {},
    }),
  ],
  ['ebb', 10, () => ({ causes: ['ebb_itself'], activities: always(), rest: { queryIntervalMs: MINUTE } })],
  [
    'cron and office',
    25,
    (random) => {
      const periodMs = oneOf(random, [10, 15, 20, 30]) * MINUTE;
      return { causes: ['periodic_probe'], periodMs, activities: [...office(random), ...probe(random, periodMs)] };
    },
  ],
  [
    'cron and short visits',
    15,
    (random) => {
      const periodMs = oneOf(random, [15, 20, 30]) * MINUTE;
      const activities = [...short(random), ...probe(random, periodMs)];
      return { causes: ['periodic_probe', 'short_visits'], periodMs, activities };
    },
  ],
  ['office', 20, (random) => ({ causes: [], activities: office(random) })],
  ['rare', 15, (random) => ({ causes: [], activities: rare(random) })],
  ['night batch', 10, (random) => ({ causes: [], activities: batch(random) })],
  ['office and batch', 10, (random) => ({ causes: [], activities: [...office(random), ...batch(random)] })],
];

function casesFrom(seed: number): Case[] {
  const random = seededRandom(seed);
  return KINDS.flatMap(([kind, many, wanted]) =>
    Array.from({ length: many }, () => caseOf({ kind, ...wanted(random) }, random)),
  );
}

function caseOf({ activities, rest, ...wanted }: Wanted, random: Random): Case {
  const { timeoutSeconds = oneOf(random, [300, 300, 300, 120, 600]) } = wanted;
  // A probe that comes more often than the timeout shows nothing but a compute that is awake.
  const timeout = wanted.periodMs && timeoutSeconds * SECOND > wanted.periodMs - MINUTE ? 300 : timeoutSeconds;
  const simulated = simulate({ ...SPAN, random, activities, timeoutSeconds: timeout, noise: true });
  const log = createOperationLog().project('p');
  for (const row of simulated.operations) log.add(row);
  const compute = aCompute({ minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: timeout, createdAtMs: 0 });
  const history = awakeHistory(log.eventsOf('ep'), { ...SPAN, present: compute });
  const noisy = simulated.hours.map((hour) => ({
    ...hour,
    cuSeconds: random() < 0.02 ? null : (hour.cuSeconds ?? 0) * between(random, 0.995, 1.005),
  }));
  return { ...wanted, facts: { compute, history, hours: noisy, ...rest } };
}

function findingFor(activities: Activity[], { rest, ...options }: Omit<Partial<Wanted>, 'activities'> = {}) {
  const facts = caseOf(
    { kind: '', causes: [], activities, timeoutSeconds: 300, ...options, rest: rest ?? {} },
    seededRandom(7),
  ).facts;
  return findCause(facts);
}

describe('causes of being awake', () => {
  it.each(SEEDS)('are right for 300 computes of known causes, mixtures and none (seed %i)', (seed) => {
    const results = casesFrom(seed).map((one) => ({ ...one, finding: findCause(one.facts) }));
    expect(results).toHaveLength(300);
    const named = results.filter(({ finding }) => finding && finding.cause !== 'unknown');
    const right = named.filter(({ finding, causes }) => finding && causes.includes(finding.cause));
    const wrong = named.filter(({ finding, causes }) => finding && !causes.includes(finding.cause));
    const caused = results.filter(({ causes }) => causes.length > 0);
    const shown = wrong.map(({ kind, finding }) => `${kind}: ${finding?.cause}`);
    expect(right.length / named.length, shown.join(', ')).toBeGreaterThanOrEqual(0.95);
    const missed = caused
      .filter((one) => !right.includes(one))
      .map(({ kind, finding }) => `${kind}: ${finding?.cause}`);
    expect(right.length / caused.length, missed.join(', ')).toBeGreaterThanOrEqual(0.8);
    for (const { finding, periodMs = 0, kind } of right.filter(({ finding: one }) => one?.cause === 'periodic_probe')) {
      expect(Math.abs((finding?.periodMs ?? 0) / periodMs - 1), kind).toBeLessThanOrEqual(0.05);
    }
  });

  it('come with what they cost a month, and what that figure is', () => {
    const every20 = findingFor(probe(seededRandom(3), 20 * MINUTE));
    // Five minutes and a bit of each twenty, at the minimum of 0.25 CU, for 730 hours.
    expect(every20).toMatchObject({ cause: 'periodic_probe', figure: 'measured' });
    expect(every20?.cuHoursMonth.high).toBeCloseTo((730 * 0.25 * 5) / 20, -1);
    const unmeasured = findingFor(probe(seededRandom(3), 20 * MINUTE), { rest: { hours: [] } });
    expect(unmeasured).toMatchObject({ cause: 'periodic_probe', figure: 'estimate' });
    expect(unmeasured?.cuHoursMonth.high).toBeCloseTo((730 * 2 * 5) / 20, -2);
  });

  it('are unknown for a compute that is awake for days with next to no work, unless its sessions say more', () => {
    expect(findingFor(always())).toMatchObject({ cause: 'unknown', cuHoursMonth: { low: 0 } });
    expect(findingFor(always(), { rest: { sessions: { replicationConnections: 2 } } })?.cause).toBe('replication');
    const seen = { visits: 9, share: 1, confidence: 'high' as const, queries: [{ text: 'SELECT ?' }] };
    const clients = [{ kind: 'periodic' as const, user: 'app', application: 'web', periodMs: 4 * MINUTE, ...seen }];
    expect(findingFor(always(), { rest: { clients } })).toMatchObject({
      ...{ cause: 'clients', periodMs: 4 * MINUTE },
      evidence: ['asks every 4m: user app, application web, SELECT ?'],
    });
  });

  it('are not looked for in less than a day', () => {
    const facts = caseOf({ kind: '', causes: [], activities: always() }, seededRandom(1)).facts;
    const fromMs = SPAN.toMs - 20 * HOUR;
    expect(findCause({ ...facts, history: { ...facts.history, fromMs } })).toBeUndefined();
  });

  it('with less than a day known, name the asked clients, instead of taking a few visits for many a day', () => {
    const { compute } = caseOf({ kind: '', causes: [], activities: [], timeoutSeconds: 300 }, seededRandom(1)).facts;
    const [fromMs, toMs] = [SPAN.toMs - 2 * HOUR, SPAN.toMs];
    const visit = {
      startMs: fromMs + HOUR,
      endMs: fromMs + HOUR + 6 * MINUTE,
      start: 'client',
      end: 'timeout',
    } as const;
    const history = { fromMs, toMs, intervals: [visit], unknown: [], startDurationsMs: [] };
    const asked = { kind: 'irregular', user: 'app', visits: 1, share: 0.1, confidence: 'low' } as const;
    const clients = [{ ...asked, queries: [] }];
    expect(findCause({ compute, history, clients })).toMatchObject({ cause: 'clients' });
    expect(findCause({ compute, history })).toBeUndefined();
  });

  it('are the asked clients in less than a day, although a longer log would show that ebb itself asks', () => {
    const { facts } = caseOf({ kind: '', causes: [], activities: always(), timeoutSeconds: 300 }, seededRandom(1));
    const asked = { kind: 'periodic', user: 'app', periodMs: MINUTE, visits: 9, share: 1, confidence: 'high' } as const;
    const causeIn = (fromMs: number) => {
      const intervals = [{ startMs: fromMs, endMs: SPAN.toMs, start: 'client', end: 'open' } as const];
      const history = { fromMs, toMs: SPAN.toMs, intervals, unknown: [], startDurationsMs: [] };
      const clients = [{ ...asked, queries: [] }];
      return findCause({ compute: facts.compute, history, clients, queryIntervalMs: MINUTE })?.cause;
    };
    expect(causeIn(SPAN.toMs - 22 * HOUR)).toBe('clients');
    expect(causeIn(SPAN.toMs - 26 * HOUR)).toBe('ebb_itself');
  });
});
