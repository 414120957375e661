/** The time axis of a drawing: local times of a zone. */
import { DateTime } from 'luxon';
import type { Span } from '../domain/forecast/forecast.ts';
import { daysOf } from './forecast/local-time.ts';
import { element, tenth } from './svg-elements.ts';

const DAY_HOURS = 24;
/** Hours between two lines; those of a day and more are whole days, weeks and so on. */
const STEP_HOURS = [1, 2, 3, 6, 12, DAY_HOURS, 48, 168, 336, 720, 2160, 8760];
const MOST_TICKS = 14;

export interface Tick {
  ms: number;
  /** `06:00`, and at midnight `Mon 2`; `Mon 2 Mar` where each day has one line, and `2 Mar` where days have none. */
  text: string;
}

/** Lines of the axis: at most 14, or a few more where clocks change. */
export function timeTicks(span: Span, zone: string): Tick[] {
  const hours = STEP_HOURS.find((one) => (span.toMs - span.fromMs) / 3_600_000 / one <= MOST_TICKS) ?? 8760;
  const days = daysOf(span, { zone, hoursPerCell: Math.min(hours, DAY_HOURS) });
  const every = Math.max(1, hours / DAY_HOURS);
  const shown = days
    .filter((_, index) => index % every === 0)
    .flatMap(({ cells }) => cells.map(({ fromMs }) => fromMs));
  return shown
    .filter((ms) => ms >= span.fromMs && ms < span.toMs)
    .map((ms) => ({ ms, text: tickText(DateTime.fromMillis(ms, { zone, locale: 'en' }), hours) }));
}

function tickText(at: DateTime, stepHours: number): string {
  const isMidnight = at.toMillis() === at.startOf('day').toMillis();
  if (stepHours < DAY_HOURS) return at.toFormat(isMidnight ? 'ccc d' : 'HH:mm');
  return at.toFormat(stepHours === DAY_HOURS ? 'ccc d LLL' : 'd LLL');
}

/** A line for each tick, from `top` to `bottom`, with its text at the heights of `labels`. */
export function timeAxis(
  ticks: readonly Tick[],
  { xOf, top, bottom, labels }: { xOf(ms: number): number; top: number; bottom: number; labels: readonly number[] },
): string[] {
  return ticks.flatMap(({ ms, text }) => {
    const x = tenth(xOf(ms));
    return [
      element('line', { class: 'grid', x1: x, x2: x, y1: top, y2: bottom }),
      ...labels.map((y) => element('text', { class: 'dim', x: x + 3, y }, text)),
    ];
  });
}
