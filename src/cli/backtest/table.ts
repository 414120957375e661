import type { Backtest, BacktestRow, Variant } from '../../domain/backtest/backtest.ts';
import type { BacktestFigures } from '../../domain/backtest/measure.ts';
import { formatDuration } from '../../domain/compute/settings-text.ts';
import { formatHours } from '../forecast/sums.ts';
import { plainTable } from '../plain-table.ts';

/** One row for the policy as written, one for each alternative, one for no policy at all. */
export function backtestTable({ asWritten, alternatives, without }: Backtest): string {
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

export function formatTarget({ targetShare }: Variant): string {
  return `${Math.round(targetShare * 100)}%`;
}

/** `30m`, `1h`, `90m`. */
export function formatWindow({ windowMs }: Variant): string {
  return formatDuration(windowMs / 1000);
}

function cellsOf({ raises, lowers, restarts, minutesAboveTarget, refused, minutesRefusing, cuHours }: BacktestFigures) {
  const during = minutesRefusing > 0 ? ` in ${formatMinutes(minutesRefusing)}` : '';
  return [
    ...[raises, lowers, restarts].map((count) => count.toLocaleString('en')),
    formatMinutes(minutesAboveTarget),
    `${refused.toLocaleString('en')}${during}`,
    formatHours(cuHours),
  ];
}

function formatMinutes(minutes: number): string {
  return `${minutes.toLocaleString('en', { maximumFractionDigits: 0 })} min`;
}
