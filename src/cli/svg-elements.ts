import { DateTime } from 'luxon';
import { printable } from '../common/safe-text.ts';
import type { Span } from '../domain/time/span.ts';
import { HOUR_MS } from '../domain/time/units.ts';
import { daysOf } from './forecast/local-time.ts';

/** Writes an SVG element. `content` is markup, so that texts in it must already be escaped. */
export function element(name: string, attributes: Readonly<Record<string, string | number>>, content?: string): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${value}"`);
  const start = `<${name}${written.join('')}`;
  return content === undefined ? `${start}/>` : `${start}>${content}</${name}>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escaped(text: string): string {
  return printable(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

export function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Styles of every drawing, for light and dark viewers. */
const STYLE = `text{font:12px system-ui,sans-serif;fill:#1f2933}.title{font-size:15px;font-weight:600}.dim{fill:#616e7c}
.grid{stroke:#d9dee4}.paper{fill:#fff}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.dim{fill:#9aa5b1}.grid{stroke:#3e4c59}.paper{fill:#1a222c}}`;

interface Drawing {
  width: number;
  height: number;
  title: string;
  /** For screen readers. */
  description?: string;
  /** CSS rules for the classes that only this drawing has. */
  style: string;
  legend: readonly LegendEntry[];
  /** The x coordinate of the legend. */
  left: number;
}

interface LegendEntry {
  /** The CSS class of the elements that the entry explains. */
  name: string;
  text: string;
  height?: number;
}

/** An SVG document with a title and a legend below. The elements are markup. */
export function svgDrawing(drawing: Drawing, elements: readonly string[]): string {
  const { width, height, title, description, style, legend, left } = drawing;
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  const labels = description === undefined ? 'title' : 'title description';
  const content = [
    '',
    element('title', { id: 'title' }, escaped(title)),
    ...(description === undefined ? [] : [element('desc', { id: 'description' }, escaped(description))]),
    element('style', {}, `${STYLE}\n${style}`),
    element('rect', { class: 'paper', width, height }),
    element('text', { x: 12, y: 24, class: 'title' }, escaped(title)),
    ...elements,
    ...legend.flatMap((entry, index) => legendEntry(entry, left + index * 220, height - 12)),
    '',
  ];
  const attributes = { xmlns: 'http://www.w3.org/2000/svg', ...size, role: 'img', 'aria-labelledby': labels };
  return `${element('svg', attributes, content.join('\n'))}\n`;
}

function legendEntry({ name, text, height = 10 }: LegendEntry, x: number, y: number): string[] {
  return [
    element('rect', { class: name, x, y: y - height, width: 14, height }),
    element('text', { class: 'dim', x: x + 20, y }, escaped(text)),
  ];
}

/* The time axis of a drawing: local times of a zone. */

const DAY_HOURS = 24;
/** The possible distances between two lines of the time axis. */
const STEP_HOURS = [1, 2, 3, 6, 12, DAY_HOURS, 48, 168, 336, 720, 2160, 8760];
const MAX_TICKS = 14;

interface Tick {
  ms: number;
  /** `06:00`, and `Mon 2` at midnight; with one line a day `Mon 2 Mar`, and with fewer `2 Mar`. */
  text: string;
}

/** The lines of the axis: at most 14, or a few more where clocks change. */
export function timeTicks(span: Span, zone: string): Tick[] {
  const hours = STEP_HOURS.find((one) => (span.toMs - span.fromMs) / HOUR_MS / one <= MAX_TICKS) ?? 8760;
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

/** A vertical line for each tick, from `top` to `bottom`. Its text stands at each y coordinate of `labels`. */
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
