/** A project of a simulated month under a budget: its clients' demand, what it uses within its size, and what becomes known of that. */

import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time/units.ts';
import { noUsage, type UnitUsage } from '../../src/domain/usage/stored.ts';
import type { UsageBucket } from '../../src/domain/usage/usage.ts';
import { aCompute, aRecord } from '../support/builders.ts';
import { type Dice, diceFrom } from '../support/dice.ts';
import { type Exceptions, exceptionsOf } from './budget-exceptions.ts';

export const SLOT_MS = 15 * 60_000;
export const SLOT_SECONDS = 900;
const MONTH_DAYS = 30;
const HISTORY_DAYS = 35;
export const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
export const TO_MS = FROM_MS + MONTH_DAYS * DAY_MS;
export const START_MS = FROM_MS - HISTORY_DAYS * DAY_MS;
export const SLOTS = (MONTH_DAYS + HISTORY_DAYS) * 96;
export const PROJECTS = 6;
/** What clients had before there was a budget. */
const HAD = { minCu: 0.25, maxCu: 4, suspendTimeoutSeconds: 3600 };

interface Wobble {
  level: number;
  noise: number;
  spike: number;
}

/** Each week and day: a walk, jumps, noise that lasts for some days, and now and then a day of four times as much. */
function nextDay({ level, noise }: Wobble, day: number, { normal, uniform }: Dice): Wobble {
  const walk = day % 7 === 0 ? 0.05 * normal() : 0;
  const jump = uniform() < 0.02 / 7 ? 0.7 * normal() : 0;
  return { level: level + walk + jump, noise: 0.5 * noise + 0.3 * normal(), spike: uniform() < 0.02 ? 4 : 1 };
}

/** The demand of one compute: CU that its clients want in each slot; 0 where there are none. */
function demandOf(dice: Dice): Float64Array {
  const size = Math.exp(0.6 * dice.normal());
  let today: Wobble = { level: 0, noise: 0.35 * dice.normal(), spike: 1 };
  const wanted = new Float64Array(SLOTS);
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const day = Math.floor(slot / 96);
    if (slot % 96 === 0) today = nextDay(today, day, dice);
    const { level, noise, spike } = today;
    const hour = (slot % 96) / 4;
    const isOffice = hour >= 8 && hour < 19 && (day + 2) % 7 < 5;
    const share = Math.min(1, (isOffice ? 0.6 : 0.12) * Math.exp(noise / 2) * Math.sqrt(spike));
    if (dice.uniform() < share) wanted[slot] = size * spike * Math.exp(level + noise + 0.3 * dice.normal());
  }
  return wanted;
}

/** A project with one compute, and what is known of it. */
export interface Project {
  projectId: string;
  demand: Float64Array;
  compute: Compute;
  record: ComputeRecord;
  /** How long it stays awake if nobody comes. */
  awakeForSeconds: number;
  stateBefore: Compute['state'];
  changes: number;
  raises: number;
  /** By headroom: going back is no change by a step. */
  isRaised: boolean;
  exceptions: Exceptions;
  /** What it may have since the amount was reached. */
  allowedCu?: number;
  isChangedByHand?: true;
  /** What it really used, in CU-seconds. */
  hours: number[];
  /** Hours that never become known. */
  missing: ReadonlySet<number>;
  usage: UnitUsage;
}

export function createProject(index: number, dice: Dice, { seed }: { seed: number }): Project {
  const projectId = `dev-${index}`;
  const demand = demandOf(dice);
  const missing = Array.from({ length: 3 }, () => Math.floor((dice.uniform() * SLOTS) / 4));
  const compute = aCompute({
    ...{ ...HAD, projectId, projectName: projectId, computeId: `ep-${index}`, branchRoles: ['child'], state: 'idle' },
  });
  return {
    ...{
      projectId,
      demand,
      compute,
      awakeForSeconds: 0,
      stateBefore: compute.state,
      changes: 0,
      raises: 0,
      isRaised: false,
      hours: [],
    },
    exceptions: exceptionsOf(index, projectId, FROM_MS, diceFrom(seed * 31 + index)),
    record: aRecord({ baseline: HAD, lastApplied: HAD, firstSeenAtMs: START_MS }),
    missing: new Set(seed % 3 === 0 ? missing : []),
    usage: noUsage({ projectId, branchId: null }),
  };
}

/** Uses what its clients want within its size, and stays awake for its timeout after they have gone. Gives the CU-seconds. */
export function useSlot(project: Project, slot: number): number {
  const { compute, demand } = project;
  const wanted = demand[slot] ?? 0;
  if (wanted > 0) {
    project.awakeForSeconds = compute.suspendTimeoutSeconds;
    project.compute = { ...compute, state: 'active' };
    return Math.min(Math.max(wanted, compute.minCu), compute.maxCu) * SLOT_SECONDS;
  }
  const left = Math.min(project.awakeForSeconds, compute.suspendTimeoutSeconds);
  const seconds = Math.min(left, SLOT_SECONDS);
  project.awakeForSeconds = left - seconds;
  project.compute = { ...compute, state: left > seconds ? 'active' : 'idle' };
  return seconds * compute.minCu;
}

/** The stalls of a month: for six hours nothing arrives, and then all of it. */
export type LateMs = (hour: number) => number;

export function stallsOf({ uniform }: Dice): LateMs {
  const starts = Array.from({ length: 4 }, () => Math.floor((uniform() * SLOTS) / 4));
  return (hour) => {
    const start = starts.find((one) => hour >= one && hour < one + 6);
    return start === undefined ? 0 : (start + 6 - hour) * HOUR_MS;
  };
}

export interface Arriving {
  nowMs: number;
  dataUntilMs: number;
  lateMs: LateMs;
}

/** The last hours, as far as they are known; and, once a day, the total of yesterday. */
export function arrived({ hours, missing }: Project, { nowMs, dataUntilMs, lateMs }: Arriving): UsageBucket[] {
  const hourOf = (startMs: number) => Math.round((startMs - START_MS) / HOUR_MS);
  const buckets: UsageBucket[] = [];
  for (let startMs = nowMs - 12 * HOUR_MS; startMs + 3 * HOUR_MS <= nowMs; startMs += HOUR_MS) {
    const hour = hourOf(startMs);
    const isKnown = startMs < dataUntilMs && !missing.has(hour) && startMs + 3 * HOUR_MS + lateMs(hour) <= nowMs;
    buckets.push({ startMs, seconds: 3600, cuSeconds: isKnown ? (hours[hour] ?? 0) : null });
  }
  const dayMs = nowMs - 27 * HOUR_MS;
  const ofDay = Array.from({ length: 24 }, (_, index) => hourOf(dayMs) + index);
  const isWhole = dayMs >= START_MS && dayMs + DAY_MS <= dataUntilMs && !ofDay.some((hour) => missing.has(hour));
  if (dayMs % DAY_MS !== 0 || !isWhole) return buckets;
  return [...buckets, { startMs: dayMs, seconds: 86_400, cuSeconds: sum(ofDay.map((hour) => hours[hour] ?? 0)) }];
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
