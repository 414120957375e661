import { request } from 'undici';
import type { Range } from './closing-table.ts';
import type { MeasuredDay } from './measured-day.ts';

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

/** The saving in CU-hours: estimated, measured, and as the second platform shows it. */
export function savingLines({
  estimate,
  measured: { used, saved },
  truth,
}: {
  estimate: Range;
  measured: MeasuredDay;
  truth: number;
}): string {
  return [
    'Saved, in CU-hours:',
    `  estimated  ${formatted(estimate)}  from settings and states alone: ebb_estimated_saved_cu_seconds_total`,
    `  measured   ${formatted(saved)}  from the ${used.toFixed(1)} that the control API has metered, each hour replayed with the settings of before`,
    `  in truth   ${truth.toFixed(1).padEnd(14)}  what the second platform used beyond that`,
    verdict(estimate, saved, truth),
  ].join('\n');
}

function formatted({ low, high }: Range): string {
  return `${low.toFixed(1)} to ${high.toFixed(1)}`.padEnd(14);
}

function verdict(estimate: Range, measured: Range, truth: number): string {
  const contains = ({ low, high }: Range) => low - ROUNDED <= truth && truth <= high + ROUNDED;
  if (contains(estimate) && contains(measured)) return 'Both contain the truth.';
  const why = [
    ...(contains(estimate)
      ? []
      : ['The estimate does not contain it: it takes sleep for saved only where a compute never slept before.']),
    ...(contains(measured)
      ? []
      : ['The measured range does not contain it: an hour in which settings changed is replayed as a whole.']),
  ];
  return why.join('\n');
}

/** Shown numbers have one decimal. */
const ROUNDED = 0.05;
