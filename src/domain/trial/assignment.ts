/**
 * Assigns units to the control group of a trial. The assignment follows from the trial and the unit's name alone, so that it can be
 * forecast and verified. Instants are milliseconds since the epoch; days are local dates, counted from 1970-01-01.
 */
import { createHash } from 'node:crypto';
import { instantOfMinute, localDayAt } from '../time/windows/local-time.ts';

/** The parameters of a trial's draw and periods. */
export interface TrialDesign {
  seed: string;
  /** One in this many units is in the control group at a time: 2, 3, 4, 5 or 10. */
  oneOf: number;
  /** The length of a period, in days. */
  rotateDays: number;
  /** The first day of the trial. */
  fromDay: number;
  /** The number of periods: a whole number of rotations, each of {@link oneOf} periods. */
  periods: number;
  /** A valid IANA name. */
  zone: string;
}

/** The day after the last one of the trial. */
export function endDayOf({ fromDay, periods, rotateDays }: TrialDesign): number {
  return fromDay + periods * rotateDays;
}

/** `control`: the policies are withdrawn; `treated`: they have their effect. */
export type Arm = 'control' | 'treated';

/** Flips are spread over this many seconds, to spare the control API. */
const FLIP_SPREAD_SECONDS = 6 * 3600;

/** The draw of a unit: its slot in the rotation (0 to less than {@link TrialDesign.oneOf}), and the delay of its flips after local midnight. */
export interface Draw {
  slot: number;
  flipDelayMs: number;
  /** When the trial was ended early: each unit leaves it after its delay. Absent for a trial that was not. */
  stoppedAtMs?: number;
}

/** Draws by the first 16 hex digits of the SHA-256 of `seed/unit`: 8 for the slot, 8 for the delay. */
export function drawOf({ seed, oneOf }: Pick<TrialDesign, 'seed' | 'oneOf'>, unit: string): Draw {
  const digits = createHash('sha256').update(`${seed}/${unit}`).digest('hex');
  const number = (from: number) => Number.parseInt(digits.slice(from, from + 8), 16);
  return { slot: number(0) % oneOf, flipDelayMs: (number(8) % FLIP_SPREAD_SECONDS) * 1000 };
}

/** The arm of a slot in a period; periods are counted from 0. */
export function armInPeriod({ oneOf }: Pick<TrialDesign, 'oneOf'>, slot: number, period: number): Arm {
  return (period + slot) % oneOf === 0 ? 'control' : 'treated';
}

/** The period of a local day; undefined before and after the trial. */
export function periodOfDay({ fromDay, rotateDays, periods }: TrialDesign, localDay: number): number | undefined {
  const period = Math.floor((localDay - fromDay) / rotateDays);
  return period >= 0 && period < periods ? period : undefined;
}

/** The start of a period, without a unit's delay. The start after the last period is the end of the trial. */
export function periodStartMs({ zone, fromDay, rotateDays }: TrialDesign, period: number): number {
  return instantOfMinute(zone, fromDay + period * rotateDays, 0);
}

export function trialSpan(design: TrialDesign): { fromMs: number; untilMs: number } {
  return { fromMs: periodStartMs(design, 0), untilMs: periodStartMs(design, design.periods) };
}

/**
 * The period of a unit at an instant. All periods of a unit begin and end later by its delay, so the last ends after the trial.
 * Undefined outside of them, and after an early end.
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

/** The instants at which a unit enters or leaves the control group, ascending. */
export function flipsOf(design: TrialDesign, draw: Draw): number[] {
  const isControl = (period: number) =>
    period >= 0 && period < design.periods && armInPeriod(design, draw.slot, period) === 'control';
  const flips: number[] = [];
  for (let period = 0; period <= design.periods; period += 1) {
    if (isControl(period - 1) !== isControl(period)) flips.push(periodStartMs(design, period) + draw.flipDelayMs);
  }
  if (draw.stoppedAtMs === undefined) return flips;
  const endMs = draw.stoppedAtMs + draw.flipDelayMs;
  const flipsBeforeEnd = flips.filter((flipMs) => flipMs < endMs);
  // The first flip enters the control group, so after an odd number of flips the unit is in it.
  return flipsBeforeEnd.length % 2 === 0 ? flipsBeforeEnd : [...flipsBeforeEnd, endMs];
}
