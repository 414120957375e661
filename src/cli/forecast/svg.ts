import { countedComputes } from '../../common/names.ts';
import { NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { Segment } from '../../domain/forecast/forecast.ts';
import type { Span } from '../../domain/time/span.ts';
import { type AlikeGroup, groupAlike } from '../group-alike.ts';
import { shortened } from '../output.ts';
import { differenceOf, formatRange, formatRangeChange, sumOf } from '../ranges.ts';
import { element, escaped, svgDrawing, tenth, timeAxis, timeTicks } from '../svg-elements.ts';
import { formatInstant, formatSpan } from './local-time.ts';
import { hoursWithEbb, hoursWithoutEbb, type Outlook } from './outlook.ts';

const WIDTH = 1200;
const LEFT = 240;
const RIGHT = 130;
const TOP = 64;
const ROW = 58;
const BAR = 42;
const LINE = 3;
const FOOT = 54;
/** Bars start a step below the smallest size, since lengths are logarithmic. */
const SMALLEST_CU = 0.25;
const MAX_CHARACTERS = 30;
/** The height of a number on the size axis. */
const NUMBER_HEIGHT = 11;

const STYLE = `.max{fill:#9cc2e5}.min{fill:#3b73ad}.awake{fill:#b4531a}.size{font-size:10px;text-anchor:end}
@media(prefers-color-scheme:dark){.max{fill:#2c5a85}.min{fill:#7fb2e5}.awake{fill:#f0a36b}}`;

const LEGEND = [
  { name: 'min', text: 'minimum' },
  { name: 'max', text: 'maximum' },
  { name: 'awake', text: 'never suspends', height: LINE },
];

/**
 * Draws the whole span. Computes with the same forecast share a row: a bar from their minimum (dark) to their maximum (light),
 * logarithmic in the size, and under it a line while they never suspend.
 */
export function drawSvg(outlooks: readonly Outlook[], { zone, ...span }: Span & { zone: string }): string {
  const rows = groupAlike(outlooks, ({ segments, cuHours }) => ({ segments, cuHours }));
  const bottom = TOP + rows.length * ROW;
  const xOf = (ms: number) => LEFT + ((ms - span.fromMs) / (span.toMs - span.fromMs)) * (WIDTH - LEFT - RIGHT);
  const largest = Math.max(1, ...outlooks.flatMap(({ segments }) => segments.map(({ maxCu }) => maxCu)));
  const heightOf = (cu: number) => BAR * (steps(cu) / steps(largest));
  const title = `Sizes of ${countedComputes(outlooks.length)}, ${formatSpan(span, zone)}`;
  const description = descriptionOf(outlooks);
  const scale = { xOf, zone, heightOf, sizes: sizesOf(largest) };
  return svgDrawing(
    { width: WIDTH, height: bottom + FOOT, title, description, style: STYLE, legend: LEGEND, left: LEFT },
    [
      element('text', { class: 'dim size', x: LEFT - 6, y: TOP - 10 }, 'CU'),
      ...timeAxis(timeTicks(span, zone), { xOf, top: TOP - 20, bottom: bottom + 16, labels: [TOP - 10, bottom + 14] }),
      ...rows.flatMap((row, index) => rowOf(row, TOP + index * ROW, scale)),
    ],
  );
}

interface Scale {
  xOf(ms: number): number;
  heightOf(cu: number): number;
  /** The sizes that the axis names, in CU. */
  sizes: readonly number[];
  zone: string;
}

/** The height of a size in steps: 1 for the smallest, and one more for each doubling. */
function steps(cu: number): number {
  return Math.log2(cu / SMALLEST_CU) + 1;
}

/** Powers of two from the largest downward, as many as fit. */
function sizesOf(largest: number): number[] {
  const every = Math.ceil(NUMBER_HEIGHT / (BAR / steps(largest)));
  const doublings = Math.floor(Math.log2(largest / SMALLEST_CU));
  return Array.from(
    { length: Math.floor(doublings / every) + 1 },
    (_, index) => SMALLEST_CU * 2 ** (doublings - index * every),
  );
}

function descriptionOf(outlooks: readonly Outlook[]): string {
  const hours = sumOf(outlooks, hoursWithEbb);
  const change = differenceOf(hours, sumOf(outlooks, hoursWithoutEbb));
  return `${formatRange(hours)} CU-hours in all; against the baseline ${formatRangeChange(change)}.`;
}

type Row = AlikeGroup<Outlook, Pick<Outlook, 'segments' | 'cuHours'>>;

function rowOf({ members, shared: { segments, cuHours } }: Row, top: number, scale: Scale): string[] {
  const bottom = top + BAR;
  return [
    ...namesOf(members, top),
    ...scale.sizes.flatMap((cu) => sizeLine(cu, tenth(bottom - scale.heightOf(cu)))),
    ...segments.map((segment) => barOf(segment, bottom, scale)),
    element('text', { x: WIDTH - RIGHT + 10, y: top + 20, class: 'dim' }, escaped(formatRange(cuHours))),
    element('text', { x: WIDTH - RIGHT + 10, y: top + 35, class: 'dim' }, members.length > 1 ? 'CU-h each' : 'CU-h'),
  ];
}

/** Names the project and the compute, or for several computes their number and projects. A tooltip has all names. */
function namesOf(members: readonly Outlook[], top: number): string[] {
  const computes = members.map(({ compute }) => compute);
  const [only, ...others] = computes;
  const [first, second] =
    only !== undefined && others.length === 0
      ? [only.projectName, only.computeId]
      : [countedComputes(computes.length), firstOf([...new Set(computes.map(({ projectName }) => projectName))])];
  const all = computes.map(({ projectName, computeId }) => `${projectName} / ${computeId}`).join(', ');
  const label = [
    element('title', {}, escaped(all)),
    element('text', { x: 12, y: top + 20 }, escaped(shortened(first, MAX_CHARACTERS))),
    element('text', { x: 12, y: top + 35, class: 'dim' }, escaped(shortened(second, MAX_CHARACTERS))),
  ];
  return [element('g', {}, label.join(''))];
}

/** The names that fit, and the number of the others: `web-shop, web-blog, +9`. */
function firstOf(names: readonly string[]): string {
  const texts = names.map((_, index) => {
    const more = index + 1 < names.length ? [`+${names.length - index - 1}`] : [];
    return [...names.slice(0, index + 1), ...more].join(', ');
  });
  return texts.findLast((text) => text.length <= MAX_CHARACTERS) ?? texts[0] ?? '';
}

function sizeLine(cu: number, y: number): string[] {
  return [
    element('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
    element('text', { class: 'dim size', x: LEFT - 6, y: y + 4 }, `${cu}`),
  ];
}

function barOf(segment: Segment, bottom: number, { xOf, heightOf, zone }: Scale): string {
  const place = { x: tenth(xOf(segment.fromMs)), width: tenth(xOf(segment.toMs) - xOf(segment.fromMs)) };
  const bar = (cu: number) => ({ ...place, y: tenth(bottom - heightOf(cu)), height: tenth(heightOf(cu)) });
  const neverSuspends = segment.suspendTimeoutSeconds === NEVER_SUSPENDS;
  const sleep = neverSuspends
    ? 'never suspends'
    : `suspends after ${formatSuspendTimeout(segment.suspendTimeoutSeconds)}`;
  const by = segment.policies.length > 0 ? ` (${segment.policies.join(', ')})` : '';
  const hint = `${formatInstant(segment.fromMs, zone)} to ${formatInstant(segment.toMs, zone)}: ${formatSize(segment)} CU, ${sleep}${by}`;
  return element(
    'g',
    {},
    [
      element('title', {}, escaped(hint)),
      element('rect', { class: 'max', ...bar(segment.maxCu) }),
      element('rect', { class: 'min', ...bar(segment.minCu) }),
      ...(neverSuspends ? [element('rect', { class: 'awake', ...place, y: bottom + 2, height: LINE })] : []),
    ].join(''),
  );
}
