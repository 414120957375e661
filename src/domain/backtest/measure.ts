import { sameSize } from '../compute/compute.ts';
import { cuHours, cuSeconds } from '../compute/cost.ts';
import type { Range } from '../estimate.ts';
import type { Replay } from './replay.ts';

/** The result of a replay of one or several computes. Minutes are compute-minutes. */
export interface BacktestFigures {
  raises: number;
  lowers: number;
  /** Changes that restarted a compute that was awake. */
  restarts: number;
  dropped: number;
  /** Minutes in which clients wanted a larger share of the usable connections than the target. */
  minutesAboveTarget: number;
  /** Minutes in which some clients could not connect. */
  minutesRefusing: number;
  /** New clients that could not connect. */
  refused: number;
  /** Minutes awake without a valid count. */
  minutesUnknown: number;
  cuHours: Range;
}

/** Absorbs floating-point error, so that 58 of 100 connections do not exceed a target of 58 %. */
const ROUNDING = 1e-9;

export function measure({ stretches, changes }: Replay, targetShare: number): BacktestFigures {
  const use = { low: 0, high: 0 };
  const minutes = { aboveTarget: 0, refusing: 0, unknown: 0 };
  let refused = 0;
  for (const stretch of stretches) {
    const seconds = (stretch.toMs - stretch.fromMs) / 1000;
    const { demand, usable } = stretch;
    refused += stretch.refused;
    if (stretch.isAwake) {
      const { low, high } = cuSeconds(stretch, seconds);
      use.low += low;
      use.high += high;
    }
    if (demand === undefined) minutes.unknown += seconds / 60;
    else if (demand > usable) minutes.refusing += seconds / 60;
    if (demand !== undefined && demand > targetShare * usable + ROUNDING) minutes.aboveTarget += seconds / 60;
  }
  const resized = changes.filter(({ before, after }) => !sameSize(before, after));
  return {
    raises: resized.filter(({ raises }) => raises).length,
    lowers: resized.filter(({ raises }) => !raises).length,
    restarts: changes.filter(({ disconnects }) => disconnects).length,
    dropped: changes.reduce((sum, { dropped }) => sum + dropped, 0),
    minutesAboveTarget: minutes.aboveTarget,
    minutesRefusing: minutes.refusing,
    refused,
    minutesUnknown: minutes.unknown,
    cuHours: cuHours(use),
  };
}

export function sumOfFigures(all: readonly BacktestFigures[]): BacktestFigures {
  const sum = (figureOf: (figures: BacktestFigures) => number) =>
    all.reduce((total, figures) => total + figureOf(figures), 0);
  return {
    raises: sum(({ raises }) => raises),
    lowers: sum(({ lowers }) => lowers),
    restarts: sum(({ restarts }) => restarts),
    dropped: sum(({ dropped }) => dropped),
    minutesAboveTarget: sum(({ minutesAboveTarget }) => minutesAboveTarget),
    minutesRefusing: sum(({ minutesRefusing }) => minutesRefusing),
    refused: sum(({ refused }) => refused),
    minutesUnknown: sum(({ minutesUnknown }) => minutesUnknown),
    cuHours: { low: sum(({ cuHours: { low } }) => low), high: sum(({ cuHours: { high } }) => high) },
  };
}
