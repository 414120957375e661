import type { Backtest, BacktestRow, Variant } from '../../domain/backtest/backtest.ts';
import type { BacktestFigures } from '../../domain/backtest/measure.ts';
import { formatDuration } from '../../domain/compute/compute-units.ts';
import { roundTo } from '../../domain/sum.ts';
import type { Span } from '../../domain/time/span.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { rounded } from '../forecast/report.ts';
import { formatRange } from '../ranges.ts';
import { plainTable } from '../terminal.ts';

export function backtestTable({ asWritten, alternatives, withoutPolicy: without }: Backtest): string {
  const rowOf = ({ figures, ...variant }: BacktestRow, mark = '') => [
    `${formatTarget(variant)}${mark}`,
    formatWindow(variant),
    ...cellsOf(figures),
  ];
  return plainTable(
    ['target', 'window', 'raises', 'lowers', 'restarts', 'above target', 'refused', 'CU-hours'],
    [rowOf(asWritten, ' *'), ...alternatives.map((one) => rowOf(one)), ['without', '', ...cellsOf(without)]],
    ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'],
  );
}

function formatTarget({ targetShare }: Variant): string {
  return `${Math.round(targetShare * 100)}%`;
}

/** `30m`, `1h`, `90m`. */
function formatWindow({ windowMs }: Variant): string {
  return formatDuration(windowMs / 1000);
}

function cellsOf({ raises, lowers, restarts, minutesAboveTarget, refused, minutesRefusing, cuHours }: BacktestFigures) {
  const during = minutesRefusing > 0 ? ` in ${formatMinutes(minutesRefusing)}` : '';
  return [
    ...[raises, lowers, restarts].map((count) => count.toLocaleString('en')),
    formatMinutes(minutesAboveTarget),
    `${refused.toLocaleString('en')}${during}`,
    formatRange(cuHours),
  ];
}

function formatMinutes(minutes: number): string {
  return `${minutes.toLocaleString('en', { maximumFractionDigits: 0 })} min`;
}

/** Instants in UTC, sizes in CU. */
export function backtestJson(
  { fromMs, toMs }: Span,
  policy: string,
  { asWritten, alternatives, withoutPolicy: without, computes }: Backtest,
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
        raises,
        disconnects,
        dropped,
        policy: by,
      })),
    })),
  };
}

function rowJson({ figures, ...variant }: BacktestRow) {
  return { target: formatTarget(variant), window: formatWindow(variant), ...figuresJson(figures) };
}

function figuresJson(figures: BacktestFigures) {
  return {
    raises: figures.raises,
    lowers: figures.lowers,
    restarts: figures.restarts,
    dropped: figures.dropped,
    minutes_above_target: roundTo(figures.minutesAboveTarget, 2),
    refused: figures.refused,
    minutes_refusing: roundTo(figures.minutesRefusing, 2),
    minutes_unknown: roundTo(figures.minutesUnknown, 2),
    cu_hours: rounded(figures.cuHours),
  };
}
