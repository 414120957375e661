/** Lowerings that hurt, of four kinds: what each compute's clients need, and the policy that lowers it. */

import type { Policy } from '../../src/domain/policy/policy.ts';
import { aGuard, aSchedule, aWindow } from '../support/builders.ts';
import { diceFrom } from '../support/dice.ts';
import { aSelector } from '../support/selectors.ts';
import { type MemberOptions, SOURCE } from './guarded-fleet.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const KINDS = ['too small', 'daily peak', 'short timeout', 'ramp'] as const;
export type Kind = (typeof KINDS)[number];

/** The minutes of the day at which nights begin, and the one at which all end. */
export const EVENINGS = Array.from({ length: 12 }, (_, index) => 16 * 60 + 30 * index);
export const MORNING = 7 * 60;

export const LARGE = { minCu: 4, maxCu: 4, suspendTimeoutSeconds: 3600 };
const SMALL = { minCu: 1, maxCu: 1 };
const SHORT_SECONDS = 60;
/** How long a cache takes to fill that a short timeout loses. */
const LARGE_CACHE_MS = 20 * MINUTE_MS;

export interface Harm {
  name: string;
  kind: Kind;
  isAsleep: boolean;
  remedy: 'undo' | 'undo_with_restart';
  /** The day of the run on which its policy begins, and the minute of the evening. */
  day: number;
  evening: number;
}

const REMEDIES = ['undo', 'undo_with_restart'] as const;

/** Two at a time, one for each guard: more would be taken for a shared cause. */
export function harmsOf(count: number): Harm[] {
  return Array.from({ length: count }, (_, index) => {
    const remedy = REMEDIES[index % 2] ?? 'undo';
    const slot = Math.floor(index / 2);
    return {
      name: `${remedy}-${index}`,
      kind: KINDS[slot % KINDS.length] ?? 'ramp',
      isAsleep: Math.floor(slot / KINDS.length) % 2 === 1,
      remedy,
      day: Math.floor(slot / EVENINGS.length),
      evening: EVENINGS[slot % EVENINGS.length] ?? 0,
    };
  });
}

/** What its clients need in the evening, by minutes since the lowering; after midnight nothing. */
export function memberOf(harm: Harm, seed: number): MemberOptions {
  const { uniform } = diceFrom(seed);
  // Those that are lowered asleep have no clients before.
  const wakesAfter = harm.isAsleep ? Math.round(5 + 40 * uniform()) : Number.NEGATIVE_INFINITY;
  const peakAfter = Math.max(0, wakesAfter) + Math.round(20 + 60 * uniform());
  const rampMinutes = 40 + 40 * uniform();
  const usual = 0.2 + 0.2 * uniform();
  const need = 1.2 + 0.8 * uniform();
  const ofEvening = (minute: number): number => {
    switch (harm.kind) {
      case 'too small':
        return need;
      case 'daily peak':
        return minute >= peakAfter && minute < peakAfter + 60 ? need : usual;
      case 'short timeout':
        return (minute + 1000) % 18 < 12 ? need : 0;
      case 'ramp':
        return usual + need * Math.min(1, Math.max(0, minute - Math.max(0, wakesAfter)) / rampMinutes);
    }
  };
  return {
    name: harm.name,
    settings: LARGE,
    ...(harm.kind === 'short timeout' && { refillMs: LARGE_CACHE_MS }),
    demandAt(ms) {
      const ofDay = (ms % DAY_MS) / MINUTE_MS;
      const minute = ofDay - harm.evening;
      // Clients of a ramp or a peak are there in the morning, too: as many as usual.
      if (ofDay < MORNING) return 0;
      if (harm.isAsleep && minute > -90 && minute < wakesAfter) return 0;
      if (minute < -90 || minute > 5 * 60) return ofDay < 23.5 * 60 ? usual : 0;
      if (harm.kind === 'short timeout' && minute < 0) return usual;
      return ofEvening(minute);
    },
  };
}

const QUERY = 'histogram_quantile(0.95, sum by (le, service) (rate(http_request_duration_seconds_bucket[2m])))';

/** The guards, and the policies of all harms that have begun by a day. */
export function policiesOf(harms: readonly Harm[], day: number, watchMs: number): Policy[] {
  const guards = REMEDIES.map((remedy) =>
    aGuard({
      ...{ name: `latency-${remedy}`, source: SOURCE, query: QUERY, remedy, watchMs },
      select: aSelector({ projects: [`${remedy}-*`] }),
    }),
  );
  const nights = harms.filter((harm) => harm.day <= day).map(nightOf);
  return [...guards, ...nights];
}

function windowUntil(minute: number) {
  return aWindow({ days: [1, 2, 3, 4, 5, 6, 7], startMinute: MORNING, endMinute: minute });
}

function nightOf({ name, kind, evening }: Harm): Policy {
  const isTimeout = kind === 'short timeout';
  const { suspendTimeoutSeconds, ...size } = LARGE;
  return aSchedule({
    ...{ name: `night-of-${name}`, select: aSelector({ projects: [name] }) },
    windows: [{ at: [windowUntil(evening)], size, suspendTimeoutSeconds }],
    otherwise: isTimeout ? { size, suspendTimeoutSeconds: SHORT_SECONDS } : { size: SMALL, suspendTimeoutSeconds },
    disruption: { lower: { when: 'any', atDeadline: 'apply' }, newlyDiscovered: 'act', atOnce: 1 },
  });
}
