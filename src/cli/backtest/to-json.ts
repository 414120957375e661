import type { Backtest, BacktestRow } from '../../domain/backtest/backtest.ts';
import type { BacktestFigures } from '../../domain/backtest/measure.ts';
import type { Span } from '../../domain/forecast/forecast.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import { rounded } from '../forecast/to-json.ts';
import { formatTarget, formatWindow } from './table.ts';

/** As programs read it: instants in UTC, sizes in CU. */
export function backtestJson(
  { fromMs, toMs }: Span,
  policy: string,
  { asWritten, alternatives, without, computes }: Backtest,
) {
  return {
    from: isoInstant(fromMs),
    to: isoInstant(toMs),
    policy,
    as_written: rowJson(asWritten),
    alternatives: alternatives.map(rowJson),
    without: figuresJson(without),
    computes: computes.map(({ recording: { compute }, figures, changes }) => ({
      project_id: compute.projectId,
      compute_id: compute.computeId,
      ...figuresJson(figures),
      changes: changes.map(({ atMs, before, after, raises, disconnects, dropped, policy: by }) => ({
        at: isoInstant(atMs),
        before: { min_cu: before.minCu, max_cu: before.maxCu },
        after: { min_cu: after.minCu, max_cu: after.maxCu },
        ...{ raises, disconnects, dropped, policy: by },
      })),
    })),
  };
}

function rowJson({ figures, ...variant }: BacktestRow) {
  return { target: formatTarget(variant), window: formatWindow(variant), ...figuresJson(figures) };
}

function figuresJson(figures: BacktestFigures) {
  return {
    ...{ raises: figures.raises, lowers: figures.lowers, restarts: figures.restarts, dropped: figures.dropped },
    minutes_above_target: hundredth(figures.minutesAboveTarget),
    refused: figures.refused,
    minutes_refusing: hundredth(figures.minutesRefusing),
    minutes_unknown: hundredth(figures.minutesUnknown),
    cu_hours: rounded(figures.cuHours),
  };
}

function hundredth(minutes: number): number {
  return Math.round(minutes * 100) / 100;
}
