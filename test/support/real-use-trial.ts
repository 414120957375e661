/** Fleets of databases as in real-use.ts: what `ebb recommend` is shown of eight weeks, and what its findings cost in the five weeks after. */
import { MONTH_HOURS } from '../../src/domain/awake/causes.ts';
import { awakeHistory } from '../../src/domain/awake/intervals.ts';
import { createOperationLog } from '../../src/domain/awake/operation-log.ts';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import { seededRandom } from '../../src/domain/random.ts';
import type { Finding, PolicyDraft, RecommendFacts } from '../../src/domain/recommend/finding.ts';
import { offsetMsAt } from '../../src/domain/time/windows/local-time.ts';
import { aCompute } from './builders.ts';
import { DAY, HOUR, MINUTE, SECOND, simulate } from './demand.ts';
import { type DatabaseClass, drawUse, REAL_WEEKS, type Visits, visitsOf } from './real-use.ts';

const FROM_MS = Date.parse('2026-08-03T00:00:00Z');
export const SHOWN_MS = FROM_MS + 56 * DAY;
const TO_MS = FROM_MS + REAL_WEEKS * 7 * DAY;
/** What a start is worth, in minutes awake. */
const START_MINUTES = 5;
export const TIMEOUTS = [60, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600, -1];
const SIZES = { serverless: 35, provisioned: 32 } as const;
const [MIN_CU, MAX_CU] = [1, 4];

export interface RealDatabase extends Visits {
  seed: number;
  /** Queries take more than the minimum size, as usage shows. */
  isVisible: boolean;
  /** Memory keeps the size above the minimum, in CU. */
  idleCu: number;
  hasLastActive: boolean;
}

/** Draws a fleet. Per class, as many as in reality have no `last_active`, or never come down to their minimum. */
export function drawRealFleet(seed: number, kind: DatabaseClass): RealDatabase[] {
  const random = seededRandom(2 * seed + (kind === 'serverless' ? 0 : 1));
  const busyMemory = kind === 'serverless' ? 6 : 1;
  return Array.from({ length: SIZES[kind] }, (_, index) => ({
    seed: Math.floor(random() * 1e9),
    ...visitsOf(random, drawUse(random, kind), FROM_MS),
    isVisible: random() < 0.7,
    idleCu: index < busyMemory ? 1.3 : MIN_CU,
    hasLastActive: index % 8 !== 7,
  }));
}

/** What is known of a database under a timeout after eight weeks. */
export function shownFacts(database: RealDatabase, timeoutSeconds: number): RecommendFacts {
  const { activities, workMs, seed, isVisible, idleCu, hasLastActive } = database;
  const span = { fromMs: FROM_MS, toMs: SHOWN_MS };
  const shown = activities.filter(({ fromMs }) => fromMs < SHOWN_MS);
  const simulated = simulate({
    ...{ ...span, random: seededRandom(seed), activities: shown, timeoutSeconds },
    ...{ minCu: idleCu, maxCu: idleCu },
  });
  const log = createOperationLog().project('p');
  for (const row of simulated.operations) log.add(row);
  const lastMs = shown.at(-1)?.toMs;
  const compute = aCompute({
    ...{ minCu: MIN_CU, maxCu: MAX_CU, suspendTimeoutSeconds: timeoutSeconds, state: 'idle' },
    createdAtMs: FROM_MS - 500 * DAY,
    ...(hasLastActive && lastMs !== undefined && { lastActiveAtMs: Math.min(lastMs, SHOWN_MS) }),
  });
  const hours = simulated.hours.map((hour, index) => ({
    ...hour,
    cuSeconds: Math.min(
      MAX_CU * 3600,
      (hour.cuSeconds ?? 0) * (1 + 0.02 * Number(idleCu > MIN_CU) * (index % 5)) +
        (isVisible ? (workMs[index] ?? 0) / SECOND : 0),
    ),
  }));
  return {
    ...{ compute, hours, plan: 'scale', owner: 'unowned', profile: CONNECTION_PROFILES.specification },
    history: awakeHistory(log.eventsOf('ep'), {
      ...span,
      present: { state: 'idle', createdAtMs: compute.createdAtMs },
    }),
  };
}

/** The timeout at an instant, in seconds; -1 is never. */
export type TimeoutAt = (atMs: number) => number;

export interface Outcome {
  awakeMinutes: number;
  starts: number;
  cost: number;
}

/** What the five weeks after cost under a timeout. Under never it is awake from its first use in all weeks on. */
export function outcomeOf({ activities }: RealDatabase, timeout: number | TimeoutAt): Outcome {
  const first = activities[0]?.fromMs ?? TO_MS;
  const untilOf = (lastMs: number) => {
    if (typeof timeout === 'number') return timeout < 0 ? TO_MS : lastMs + SECOND * timeout;
    for (let atMs = lastMs; atMs < TO_MS; atMs += MINUTE) {
      const seconds = timeout(atMs);
      if (seconds >= 0 && atMs - lastMs >= SECOND * seconds) return atMs;
    }
    return TO_MS;
  };
  const isAwakeFirst = first < SHOWN_MS && (typeof timeout === 'number' ? timeout : timeout(SHOWN_MS)) < 0;
  let [awakeMs, starts, awakeFromMs, untilMs] = [0, 0, SHOWN_MS, isAwakeFirst ? untilOf(SHOWN_MS) : SHOWN_MS];
  for (const { fromMs, toMs } of activities) {
    if (toMs < SHOWN_MS) continue;
    if (fromMs > untilMs || (starts === 0 && !isAwakeFirst)) {
      awakeMs += untilMs - awakeFromMs;
      awakeFromMs = Math.max(SHOWN_MS, fromMs);
      starts += 1;
    }
    untilMs = Math.min(TO_MS, Math.max(untilMs, untilOf(toMs)));
  }
  awakeMs += untilMs - awakeFromMs;
  const awakeMinutes = awakeMs / MINUTE;
  return { awakeMinutes, starts, cost: awakeMinutes + START_MINUTES * starts };
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** The timeouts that a proposed policy sets, beside the present one. */
export function timeoutBy({ body, zone = 'UTC' }: PolicyDraft, now: number): number | TimeoutAt {
  if (body.kind === 'limits') {
    const { min, max } = body.suspend_after as { min?: string; max?: string };
    return secondsOf(min ?? max ?? 'never');
  }
  const windows = (body.windows as { at: string; suspend_after?: string }[]).map(({ at, suspend_after: after }) => {
    const [days = '', hours = ''] = at.split(' ');
    const [from = 0, to = 0] = hours.split('-').map((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));
    return { days: daysOf(days), from, to: to <= from ? to + 1440 : to, seconds: after ? secondsOf(after) : now };
  });
  const { suspend_after: otherwise } = body.otherwise as { suspend_after?: string };
  const outside = otherwise ? secondsOf(otherwise) : now;
  return (atMs) => {
    const localMs = atMs + offsetMsAt(zone, atMs);
    const [day, minute] = [new Date(localMs).getUTCDay(), Math.floor((localMs % DAY) / MINUTE)];
    const isIn = ({ days, from, to }: (typeof windows)[number]) =>
      (days.has(day) && minute >= from && minute < to) || (days.has((day + 6) % 7) && minute + 1440 < to);
    return windows.find(isIn)?.seconds ?? outside;
  };
}

function daysOf(text: string): Set<number> {
  const found = text.split(',').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map((name) => DAYS.indexOf(name));
    return Array.from({ length: ((to - from + 7) % 7) + 1 }, (_, index) => (from + index) % 7);
  });
  return new Set(found);
}

function secondsOf(text: string): number {
  if (text === 'never') return -1;
  const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (units[unit ?? ''] ?? 0),
    0,
  );
}

/** The timeouts that computes have, in seconds. */
export const SETTINGS = [300, 3600, -1] as const;

/** What findings for some databases would have brought in the weeks after. */
export interface Score {
  /** Costs, in minutes awake. */
  proposed: number;
  today: number;
  /** The best single timeout of each database in hindsight. */
  best: number;
  /** One timeout for all, in the order of {@link TIMEOUTS}. */
  plain: number[];
  /** For each proposed timeout: what it was to save, and what it saved, in CU-hours a month. */
  savings: { kind: string; low: number; mid: number; high: number; truth: number }[];
  /** Used computes that were called unused. */
  calledUnused: number;
}

export function scoreOf(
  fleet: readonly RealDatabase[],
  now: number,
  findingsOf: (facts: RecommendFacts) => Pick<Finding, 'finding' | 'proposed' | 'policy' | 'savesCuHours'>[],
): Score {
  const score: Score = {
    ...{ proposed: 0, today: 0, best: 0, plain: TIMEOUTS.map(() => 0), savings: [], calledUnused: 0 },
  };
  for (const database of fleet) {
    const costs = TIMEOUTS.map((timeout) => outcomeOf(database, timeout).cost);
    for (const [index, cost] of costs.entries()) score.plain[index] = (score.plain[index] ?? 0) + cost;
    score.best += Math.min(...costs);
    const facts = shownFacts(database, now);
    const found = findingsOf(facts);
    const isUsed = facts.history.intervals.some(({ start }) => start === 'client');
    if (isUsed && found.some(({ finding }) => finding === 'unused')) score.calledUnused += 1;
    const before = outcomeOf(database, now);
    const proposal = found.find(({ policy, proposed }) => policy && proposed.suspend_timeout_seconds !== undefined);
    const after = proposal?.policy ? outcomeOf(database, timeoutBy(proposal.policy, now)) : before;
    score.today += before.cost;
    score.proposed += after.cost;
    if (!proposal) continue;
    const hours = (before.awakeMinutes - after.awakeMinutes) / 60;
    const truth = (hours * database.idleCu * MONTH_HOURS * HOUR) / (TO_MS - SHOWN_MS);
    score.savings.push({ kind: `${now} ${proposal.finding}`, ...proposal.savesCuHours, truth });
  }
  return score;
}
