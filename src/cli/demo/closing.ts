import Table from 'cli-table3';
import pc from 'picocolors';
import { request } from 'undici';
import { cuHours } from '../../domain/compute/cost.ts';
import type { Range } from '../../domain/estimate.ts';
import { sum } from '../../domain/sum.ts';
import { sumOf } from '../ranges.ts';
import type { MeasuredDay } from './measured-day.ts';
import type { ComputeUse } from './platform.ts';

/** Each compute's day with ebb and without, and the sums. */
export function closingTable(
  used: readonly ComputeUse[],
  without: readonly ComputeUse[],
  changes: ReadonlyMap<string, number>,
): string {
  const table = new Table({
    head: ['compute', 'changes', 'restarts', 'connections dropped', 'CU-hours with ebb', 'as it was', 'saved'],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  const withoutBy = new Map(without.map((use) => [use.compute_id, use]));
  const days = used.map((use) => ({
    name: use.project_id,
    counts: [changes.get(use.compute_id) ?? 0, use.restarts, use.connections_dropped],
    hours: possibleCuHours(use),
    hoursWithout: possibleCuHours(withoutBy.get(use.compute_id) ?? use),
  }));
  const all = {
    name: pc.bold('all'),
    counts: [0, 1, 2].map((column) => sum(days.map(({ counts }) => counts[column] ?? 0))),
    hours: sumOf(days, ({ hours }) => hours),
    hoursWithout: sumOf(days, ({ hoursWithout }) => hoursWithout),
  };
  for (const { name, counts, hours, hoursWithout } of [...days, all]) {
    table.push([
      name,
      ...counts.map(String),
      formatRange(hours),
      formatRange(hoursWithout),
      saved(hours, hoursWithout),
    ]);
  }
  return table.toString();
}

/** The possible usage while awake, from always at the minimum to always at the maximum. */
function possibleCuHours({ cu_seconds_low: low, cu_seconds_high: high }: ComputeUse): Range {
  return cuHours({ low, high });
}

function formatRange({ low, high }: Range): string {
  return `${low.toFixed(1)}–${high.toFixed(1)}`;
}

function saved(withEbb: Range, without: Range): string {
  const share = (end: 'low' | 'high') => (without[end] === 0 ? 0 : Math.round((1 - withEbb[end] / without[end]) * 100));
  const ends = [share('low'), share('high')];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low === high ? `${low} %` : `${low}–${high} %`;
}

/** The daemon's own estimate of its saving so far, in CU-hours, from its metrics. */
export async function readEstimate(daemonUrl: string): Promise<Range> {
  const text = await (await request(`${daemonUrl}/metrics`)).body.text();
  const counted = (name: string, bound: string) =>
    Number(
      new RegExp(`^ebb_estimated_${name}_cu_seconds_total\\{bound="${bound}"\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0,
    );
  const balance = (bound: string) => (counted('saved', bound) - counted('added', bound)) / 3600;
  const ends = [balance('low'), balance('high')];
  return { low: Math.min(...ends), high: Math.max(...ends) };
}

/** Compares the estimated and the measured saving with `truth`, the difference to the platform without ebb. All are CU-hours. */
export function savingLines(estimate: Range, { used, saved: measured }: MeasuredDay, truth: number): string {
  const contains = ({ low, high }: Range) => low - ROUNDING_ERROR <= truth && truth <= high + ROUNDING_ERROR;
  const misses = [
    ...(contains(estimate)
      ? []
      : ['The estimate does not contain it: it takes sleep for saved only where a compute never slept before.']),
    ...(contains(measured)
      ? []
      : ['The measured range does not contain it: an hour in which settings changed is replayed as a whole.']),
  ];
  const formatted = ({ low, high }: Range) => `${low.toFixed(1)} to ${high.toFixed(1)}`.padEnd(14);
  return [
    'Saved, in CU-hours:',
    `  estimated  ${formatted(estimate)}  from settings and states alone: ebb_estimated_saved_cu_seconds_total`,
    `  measured   ${formatted(measured)}  from the ${used.toFixed(1)} that the control API has metered, each hour replayed with the settings of before`,
    `  in truth   ${truth.toFixed(1).padEnd(14)}  what the second platform used beyond that`,
    ...(misses.length === 0 ? ['Both contain the truth.'] : misses),
  ].join('\n');
}

/** Half of the last shown digit. */
const ROUNDING_ERROR = 0.05;
