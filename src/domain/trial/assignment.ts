/**
 * Assigns units to the control group of a trial. The result follows from the trial and the name of the unit alone, so a forecast knows it
 * beforehand and anybody can check it. Instants are milliseconds since the epoch; days are local dates, counted from 1970-01-01.
 */
import { createHash } from 'node:crypto';
import { instantOfMinute, localDayAt } from '../time/windows/local-time.ts';

/** The periods of a trial, and its draw. */
export interface TrialDesign {
  seed: string;
  /** One unit of this many is in the control group at a time: 2, 3, 4, 5 or 10. */
  oneOf: number;
  /** Length of a period, in days. */
  rotateDays: number;
  /** The first day. */
  fromDay: number;
  /** The number of periods: a whole number of rotations, each of {@link oneOf} periods. */
  periods: number;
  /** An IANA name, checked. */
  zone: string;
}

/** `control`: policies are withdrawn; `treated`: they have their effect. */
export type Arm = 'control' | 'treated';

/** Flips are spread over this many seconds, so that they are no herd for the control API. */
const FLIPS_SPREAD_SECONDS = 6 * 3600;

/** The draw of a unit: its place in the rotation (0 up to {@link TrialDesign.oneOf}), and the delay of its flip after local midnight. */
export interface Draw {
  slot: number;
  flipDelayMs: number;
  /** The early end of the trial for all units; each leaves it with its delay. Absent where there was none. */
  stoppedAtMs?: number;
}

/** Drawn from the first 16 hex digits of SHA-256 of `seed/unit`: 8 for the place, 8 for the delay. */
export function drawOf({ seed, oneOf }: Pick<TrialDesign, 'seed' | 'oneOf'>, unit: string): Draw {
  const digits = createHash('sha256').update(`${seed}/${unit}`).digest('hex');
  const number = (from: number) => Number.parseInt(digits.slice(from, from + 8), 16);
  return { slot: number(0) % oneOf, flipDelayMs: (number(8) % FLIPS_SPREAD_SECONDS) * 1000 };
}

/** The arm of a place of the rotation in a period, counted from 0. */
export function armInPeriod({ oneOf }: Pick<TrialDesign, 'oneOf'>, slot: number, period: number): Arm {
  return (period + slot) % oneOf === 0 ? 'control' : 'treated';
}

/** The period of a local day; undefined before and after the trial. */
export function periodOfDay({ fromDay, rotateDays, periods }: TrialDesign, localDay: number): number | undefined {
  const period = Math.floor((localDay - fromDay) / rotateDays);
  return period >= 0 && period < periods ? period : undefined;
}

/** The start of a period for units without a delay; that after the last one is the end of the trial. */
export function periodStartMs({ zone, fromDay, rotateDays }: TrialDesign, period: number): number {
  return instantOfMinute(zone, fromDay + period * rotateDays, 0);
}

/** The first instant of the trial, and the first after it. */
export function trialSpan(design: TrialDesign): { fromMs: number; untilMs: number } {
  return { fromMs: periodStartMs(design, 0), untilMs: periodStartMs(design, design.periods) };
}

/**
 * The period in which a unit is at an instant: with its delay, so the last one goes on for a while after the end of the trial.
 * Undefined before its first and after its last, and once the trial was ended early.
 */
export function periodAt(
  design: TrialDesign,
  { flipDelayMs, stoppedAtMs = Number.POSITIVE_INFINITY }: Omit<Draw, 'slot'>,
  instantMs: number,
): number | undefined {
  if (instantMs >= stoppedAtMs + flipDelayMs) return undefined;
  return periodOfDay(design, localDayAt(design.zone, instantMs - flipDelayMs));
}

/** The arm of a unit at an instant; undefined outside of the trial. */
export function armAt(design: TrialDesign, draw: Draw, instantMs: number): Arm | undefined {
  const period = periodAt(design, draw, instantMs);
  return period === undefined ? undefined : armInPeriod(design, draw.slot, period);
}

/** Every instant at which a unit enters or leaves the control group, ascending. */
export function flipsOf(design: TrialDesign, draw: Draw): number[] {
  const isControl = (period: number) =>
    period >= 0 && period < design.periods && armInPeriod(design, draw.slot, period) === 'control';
  const flips: number[] = [];
  for (let period = 0; period <= design.periods; period += 1) {
    if (isControl(period - 1) !== isControl(period)) flips.push(periodStartMs(design, period) + draw.flipDelayMs);
  }
  if (draw.stoppedAtMs === undefined) return flips;
  const endMs = draw.stoppedAtMs + draw.flipDelayMs;
  const before = flips.filter((flipMs) => flipMs < endMs);
  // Each first flip enters the control group, so after an odd number the unit is in it.
  return before.length % 2 === 0 ? before : [...before, endMs];
}
