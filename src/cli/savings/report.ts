import { DateTime } from 'luxon';
import type { Undo } from '../../app/situation/stored-source.ts';
import { sameSize } from '../../domain/compute/compute.ts';
import { unitOf } from '../../domain/decide/control-group.ts';
import { decide } from '../../domain/decide/decide.ts';
import { complianceOf } from '../../domain/evaluate/trials.ts';
import { frozenPeriods } from '../../domain/policy/frozen-periods.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import { localDayAt } from '../../domain/time/windows/local-time.ts';
import { armInPeriod, endDayOf, periodStartMs, type TrialDesign } from '../../domain/trial/assignment.ts';
import { DRAWS } from '../../domain/trial/interval.ts';
import { expectedPower } from '../../domain/trial/power.ts';
import {
  type MaybeEstimate,
  type Saved,
  type SavingsInput,
  savingsByOwner,
  savingsOf,
} from '../../domain/trial/savings.ts';
import { UserError } from '../fail.ts';
import type { TrialRead } from './read-trial.ts';

const METHOD = `randomisation test by draw of units, inverted; ${DRAWS} draws; docs/savings.md`;

/** The document of `ebb savings --json`. */
export function savingsReport(read: TrialRead, flags: { from?: string; to?: string; by?: string }) {
  const { trial, policies, computes, units, stoppedAtMs, usedUntilMs } = read;
  const { design } = trial;
  const input: SavingsInput = {
    design,
    units,
    usedUntilMs: usedUntilMs ?? 0,
    fromDay: dayOf('--from', flags.from),
    untilDay: untilDay(dayOf('--to', flags.to), stoppedAtMs, design),
    periodsLeftOut: frozenPeriods(policies, trial, computes),
  };
  const saved = savingsOf(input);
  const compliance = complianceOf(design, read.kept, read.nowMs);
  const usedUntilDay = usedUntilMs === undefined ? design.fromDay : localDayAt(design.zone, usedUntilMs);
  const fromDay = input.fromDay ?? design.fromDay;
  const toDay = Math.min(input.untilDay ?? usedUntilDay, usedUntilDay, endDayOf(design));
  return {
    from: isoDay(fromDay),
    to: isoDay(Math.max(fromDay, toDay)),
    has_begun: Math.max(read.nowMs, usedUntilMs ?? 0) >= periodStartMs(design, 0),
    starts_on: dateOf(design, 0),
    unit: trial.unit,
    trial: trial.name,
    state: stoppedAtMs === undefined ? saved.state : ('stopped' as const),
    stopped_at: stoppedAtMs === undefined ? null : isoInstant(stoppedAtMs),
    ...savedJson(saved),
    distinguishable: saved.distinguishable,
    unknown_hours: saved.unknownHours,
    compliance: { control: rounded(compliance.control, 4), treated: rounded(compliance.treated, 4) },
    starts_per_unit_day: {
      control: rounded(saved.startsPerUnitDay.control),
      treated: rounded(saved.startsPerUnitDay.treated),
      difference: rangeJson(saved.startsPerUnitDay.difference, 3),
    },
    left_out: saved.leftOut,
    periods_left_out: [...(input.periodsLeftOut ?? [])].map((period) => ({
      from: dateOf(design, period),
      reason: 'more than a fifth of it was frozen',
    })),
    undos: read.undos?.map(undoJson) ?? null,
    policies_changed:
      read.policyChanges?.map(({ atMs, setHash, revision }) => ({
        at: isoInstant(atMs),
        set_hash: setHash,
        revision,
      })) ?? null,
    ...(flags.by === 'owner' && {
      owners: savingsByOwner(input).map(({ owner, ...of }) => ({ owner, ...savedJson(of) })),
    }),
    method: METHOD,
  };
}

function undoJson({ at, project_id, compute_id, policy: guard, from, to, reasons }: Undo) {
  return { at, project_id, compute_id, guard, from, to, message: reasons[0]?.message ?? '' };
}

/** The day at which the trial ends, which no longer counts: that of `--to`, or of the stop, if that was earlier. */
function untilDay(asked: number | undefined, stoppedAtMs: number | undefined, { zone }: TrialDesign) {
  if (stoppedAtMs === undefined) return asked;
  return Math.min(asked ?? Number.POSITIVE_INFINITY, localDayAt(zone, stoppedAtMs));
}

export type SavingsReport = ReturnType<typeof savingsReport>;

function savedJson(saved: Saved) {
  return {
    relative: rangeJson(saved.relative, 4),
    cu_hours: rangeJson(saved.cuHours, 2),
    usd: rangeJson(saved.usd, 2),
    units: saved.units,
    effective_units: rounded(saved.effectiveUnits, 1),
    unit_days: saved.unitDays,
    trial_cost: { cu_hours: rangeJson(saved.trialCost.cuHours, 2), usd: rangeJson(saved.trialCost.usd, 2) },
  };
}

/** The design of a trial, and the smallest effect that it could find. */
export function designReport({ trial, policies, computes, units, usedUntilMs }: TrialRead) {
  const { design, name, unit } = trial;
  // Without usage it is not known yet which units are left out.
  const inTrial = units.filter(({ leftOut }) => leftOut === undefined || usedUntilMs === undefined);
  const slots = Array.from(
    { length: design.oneOf },
    (_, slot) => inTrial.filter(({ draw }) => draw.slot === slot).length,
  );
  const isControl = (slot: number, period: number) =>
    period >= 0 && period < design.periods && armInPeriod(design, slot, period) === 'control';
  const periods = Array.from({ length: design.periods }, (_, period) => {
    const flipping = inTrial.filter(({ draw }) => isControl(draw.slot, period) !== isControl(draw.slot, period - 1));
    const names = new Set(flipping.map((one) => one.unit));
    const sizes = computes.filter(
      (compute) => names.has(unitOf(trial, compute)) && changesSize(compute, period),
    ).length;
    const control = inTrial.filter(({ draw }) => isControl(draw.slot, period)).length;
    // A size change at a flip waits while it would disconnect clients (`trial_flip`).
    return { from: dateOf(design, period), control, flips: flipping.length, sizes, restarts: 0 };
  });
  function changesSize(compute: (typeof computes)[number], period: number): boolean {
    // Sizes are compared at noon of the period's first day.
    const input = { policies, compute, baseline: compute, instantMs: periodStartMs(design, period) + DAY_MS / 2 };
    const [control, treated] = (['control', 'treated'] as const).map((arm) => decide({ ...input, arm }).enforced.size);
    return !sameSize(control, treated);
  }
  const power = powerByPast(units, design, usedUntilMs);
  return {
    trial: name,
    unit,
    from: dateOf(design, 0),
    until: dateOf(design, design.periods),
    units: inTrial.length,
    slots,
    periods,
    expected: power
      ? {
          days: power.days,
          effective_units: rounded(power.effectiveUnits, 1),
          half_width: rounded(power.halfWidth, 4),
          detectable: rounded(power.detectable, 4),
        }
      : null,
    left_out: units.flatMap(({ unit: left, leftOut }) =>
      leftOut === undefined ? [] : [{ unit: left, reason: leftOut }],
    ),
  };
}

export type DesignReport = ReturnType<typeof designReport>;

/** The expected power of the trial, estimated from the usage before it began. */
function powerByPast(units: TrialRead['units'], design: TrialDesign, usedUntilMs: number | undefined) {
  if (usedUntilMs === undefined) return undefined;
  const lastDay = Math.min(design.fromDay, localDayAt(design.zone, usedUntilMs)) - 1;
  const past = units.map(
    ({ usage }) =>
      new Map([...usage].filter(([day]) => day <= lastDay).map(([day, { cuSeconds }]) => [day, cuSeconds])),
  );
  return expectedPower(
    design,
    past.filter((days) => days.size > 0),
    lastDay,
  );
}

function dateOf({ fromDay, rotateDays }: TrialDesign, period: number): string {
  return isoDay(fromDay + period * rotateDays);
}

function isoDay(day: number): string {
  return isoInstant(day * DAY_MS).slice(0, 10);
}

function dayOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const date = DateTime.fromISO(text, { zone: 'utc' });
  if (/^\d{4}-\d\d-\d\d$/.test(text) && date.isValid) return date.toMillis() / DAY_MS;
  throw new UserError(`${flag}: ${text} is not a date; write for example 2027-01-11`);
}

function rangeJson(range: MaybeEstimate, digits: number): MaybeEstimate {
  if (!range) return null;
  const [low, mid, high] = [range.low, range.mid, range.high].map((value) => Number(value.toFixed(digits)));
  return { low: low ?? 0, mid: mid ?? 0, high: high ?? 0 };
}

function rounded(value: number, digits?: number): number;
function rounded(value: number | null, digits?: number): number | null;
function rounded(value: number | null, digits = 3): number | null {
  return value === null ? null : Number(value.toFixed(digits));
}
