import { DateTime } from 'luxon';
import { createColors } from 'picocolors';
import { printable } from '../../common/safe-text.ts';
import { NEVER_SUSPENDS, type Size } from '../../domain/compute/compute.ts';
import { formatSize } from '../../domain/compute/compute-units.ts';
import type { Segment } from '../../domain/forecast/forecast.ts';
import { overlaps, type Span } from '../../domain/time/span.ts';
import { shortened } from '../output.ts';
import type { Colors } from '../terminal.ts';
import { type Day, daysOf } from './local-time.ts';
import type { Outlook } from './outlook.ts';

const BLOCKS = Array.from('▁▂▃▄▅▆▇█');
const NEVER_SUSPENDS_MARK = '━';
const CELL_HOURS = [1, 2, 3, 4, 6, 8, 12, 24];
const MAX_DAYS = 7;
const MAX_COMPUTES = 20;
/** The least and the largest width of the names, in characters. Cells cover so many hours that at least LABEL_ROOM is left for the names. */
const MIN_LABEL = 10;
const MAX_LABEL = 30;
const LABEL_ROOM = 14;

interface DrawingOptions extends Span {
  zone: string;
  /** The width of the terminal. */
  columns: number;
  color: boolean;
}

/**
 * Draws at most a week of at most twenty computes, with a legend, in plain characters. Each compute has a row of blocks, which are higher for
 * larger sizes, and below it a line where the compute never suspends. Colors show nothing that the height does not.
 */
export function drawWeek(outlooks: readonly Outlook[], options: DrawingOptions): string {
  const { fromMs, zone, color, columns } = options;
  const paint = createColors(color);
  const lastMs = DateTime.fromMillis(fromMs, { zone }).plus({ days: MAX_DAYS }).toMillis();
  const span = { fromMs, toMs: Math.min(options.toMs, lastMs) };
  const hoursPerCell =
    CELL_HOURS.find((hours) => labelRoom(daysOf(span, { zone, hoursPerCell: hours }), columns) >= LABEL_ROOM) ?? 24;
  const days = daysOf(span, { zone, hoursPerCell });
  const labelWidth = Math.min(MAX_LABEL, Math.max(MIN_LABEL, labelRoom(days, columns)));
  const drawn = outlooks.slice(0, MAX_COMPUTES);
  const levels = levelsOf(drawn.flatMap(({ segments }) => within(segments, span)));
  const margin = ' '.repeat(labelWidth);
  return [
    `${margin}${row(days, headOf)}`,
    `${margin}${row(days, hoursOf)}`,
    ...drawn.flatMap((outlook) => rowsOf(outlook, { days, labelWidth, levels, paint })),
    '',
    ...legend(levels, { zone, hoursPerCell, paint }),
    ...(span.toMs < options.toMs ? [`Only the first ${MAX_DAYS} days are drawn.`] : []),
    ...(drawn.length < outlooks.length
      ? [`Only the first ${drawn.length} of ${outlooks.length} computes are drawn: name some, or see --svg and --json.`]
      : []),
  ]
    .map((line) => line.trimEnd())
    .join('\n');
}

/** The columns that a row has left for the name of its compute. */
function labelRoom(days: readonly Day[], columns: number): number {
  return columns - days.reduce((sum, { cells }) => sum + cells.length + 1, 0);
}

function row(days: readonly Day[], textOf: (day: Day) => string): string {
  return days.map((day) => textOf(day).padEnd(day.cells.length)).join(' ');
}

function headOf({ label, cells }: Day): string {
  const [weekday = '', number = ''] = label.split(' ');
  return [label, `${weekday} ${number}`, weekday, ''].find((text) => text.length <= cells.length) ?? '';
}

/** Marks 0 and 12 o'clock, and also 6 and 18 where there is room. */
function hoursOf({ cells, wholeCells }: Day): string {
  if (cells.length < wholeCells || wholeCells < 4) return '';
  const marks = wholeCells >= 12 ? [0, 6, 12, 18] : [0, 12];
  return marks.map((hour) => String(hour).padEnd(wholeCells / marks.length)).join('');
}

interface RowOptions {
  days: readonly Day[];
  labelWidth: number;
  levels: Levels;
  paint: Colors;
}

function rowsOf({ compute, segments }: Outlook, { days, labelWidth, levels, paint }: RowOptions): string[] {
  const label = (text: string) => shortened(printable(text), labelWidth - 1).padEnd(labelWidth);
  const sizes = row(days, ({ cells }) => cells.map((cell) => blockOf(within(segments, cell), levels)).join(''));
  const neverSuspends = row(days, ({ cells }) =>
    cells.map((cell) => (neverSuspend(within(segments, cell)) ? NEVER_SUSPENDS_MARK : ' ')).join(''),
  );
  const colored = sizes.replace(/[^ ]/g, (block) => colorOf(block, paint));
  return [
    `${label(compute.projectName)}${colored}`,
    `${paint.dim(label(compute.computeId))}${paint.magenta(neverSuspends)}`,
  ];
}

function within(segments: readonly Segment[], span: Span): Segment[] {
  return segments.filter((segment) => overlaps(segment, span));
}

function blockOf(segments: readonly Segment[], levels: Levels): string {
  const largest = segments.toSorted(compareSizes).at(-1);
  return (largest && BLOCKS[levels.of(largest)]) ?? ' ';
}

function neverSuspend(segments: readonly Segment[]): boolean {
  return segments.some(({ suspendTimeoutSeconds }) => suspendTimeoutSeconds === NEVER_SUSPENDS);
}

/** Of the eight levels, the two largest are red, and the three below them yellow. */
function colorOf(block: string, paint: Colors): string {
  const level = BLOCKS.indexOf(block);
  if (level >= 6) return paint.red(block);
  return level >= 3 ? paint.yellow(block) : paint.green(block);
}

function legend(levels: Levels, { zone, hoursPerCell, paint }: { zone: string; hoursPerCell: number; paint: Colors }) {
  const sizes = levels.used.map(({ level, sizes }) => `${colorOf(BLOCKS[level] ?? '', paint)} ${sizes.join(', ')}`);
  const cell = hoursPerCell === 1 ? 'an hour' : `${hoursPerCell} hours: the largest size in them`;
  return [
    `${sizes.join('   ')} CU   ${paint.magenta(NEVER_SUSPENDS_MARK)} never suspends`,
    `A cell is ${cell}. Days and hours of ${zone}.`,
  ];
}

/** Says which block draws a size, as an index of BLOCKS. */
interface Levels {
  of(size: Size): number;
  /** The levels in use, from the lowest, and the sizes of each. */
  used: readonly { level: number; sizes: readonly string[] }[];
}

/** Spreads the occurring sizes over all blocks, from the lowest for the smallest to the highest for the largest. A single size gets a middle one. */
function levelsOf(segments: readonly Segment[]): Levels {
  const occurring = new Map(segments.map((segment) => [formatSize(segment), segment]));
  const ascending = [...occurring].sort(([, a], [, b]) => compareSizes(a, b)).map(([text]) => text);
  const levelOf = (text: string) => {
    const highest = BLOCKS.length - 1;
    if (ascending.length === 1) return Math.floor(highest / 2);
    return Math.round((ascending.indexOf(text) * highest) / (ascending.length - 1));
  };
  const levels = new Map(ascending.map((text) => [text, levelOf(text)]));
  const used = [...new Set(levels.values())];
  return {
    of: (size) => levels.get(formatSize(size)) ?? 0,
    used: used.map((level) => ({ level, sizes: ascending.filter((text) => levels.get(text) === level) })),
  };
}

function compareSizes(a: Size, b: Size): number {
  return a.maxCu - b.maxCu || a.minCu - b.minCu;
}
