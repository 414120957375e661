import { NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/settings-text.ts';
import type { Span } from '../../domain/forecast/forecast.ts';
import type { Segment } from '../../domain/forecast/walk.ts';
import { shortened } from '../output.ts';
import { element, escaped, svgDrawing, tenth } from '../svg-elements.ts';
import { daysOf, formatInstant, formatSpan } from './local-time.ts';
import type { Outlook } from './outlook.ts';
import { differenceOf, formatChange, formatHours, sumOf } from './sums.ts';

const WIDTH = 1200;
const LEFT = 220;
const RIGHT = 150;
const TOP = 64;
const ROW = 40;
const BAR = 28;
const LINE = 3;
const FOOT = 30;
/** The smallest size that there is: bars start a step below it, since lengths are by the logarithm. */
const SMALLEST_CU = 0.25;
const MOST_DAY_LABELS = 31;

const STYLE = '.max{fill:#9cc2e5}.min{fill:#3b73ad}.awake{fill:#b4531a}';

const LEGEND = [
  { name: 'min', text: 'minimum' },
  { name: 'max', text: 'maximum (height: doublings)' },
  { name: 'awake', text: 'never suspends', height: LINE },
];

/**
 * The whole time as a cached project: for each compute a bar from its minimum (dark) to its maximum (light),
 * by the logarithm of the size, and under it a line while it never suspends.
 */
export function drawSvg(outlooks: readonly Outlook[], { zone, ...span }: Span & { zone: string }): string {
  const height = TOP + outlooks.length * ROW + FOOT;
  const xOf = (ms: number) => LEFT + ((ms - span.fromMs) / (span.toMs - span.fromMs)) * (WIDTH - LEFT - RIGHT);
  const largest = Math.max(1, ...outlooks.flatMap(({ segments }) => segments.map(({ maxCu }) => maxCu)));
  const scale = { xOf, zone, heightOf: (cu: number) => BAR * (steps(cu) / steps(largest)) };
  const title = `Sizes of ${outlooks.length} computes, ${formatSpan(span, zone)}`;
  const description = descriptionOf(outlooks);
  return svgDrawing({ width: WIDTH, height, title, description, style: STYLE, legend: LEGEND, left: LEFT }, [
    ...dayLines(span, { xOf, zone, bottom: height - FOOT }),
    ...outlooks.flatMap((outlook, index) => rowOf(outlook, TOP + index * ROW, scale)),
  ]);
}

interface Scale {
  xOf(ms: number): number;
  heightOf(cu: number): number;
  zone: string;
}

/** How many doublings a size is above nothing. */
function steps(cu: number): number {
  return Math.log2(cu / SMALLEST_CU) + 1;
}

function descriptionOf(outlooks: readonly Outlook[]): string {
  const hours = sumOf(outlooks, ({ cuHours }) => cuHours);
  const change = differenceOf(
    hours,
    sumOf(outlooks, ({ without }) => without),
  );
  return `${formatHours(hours)} CU-hours in all; against the baseline ${formatChange(change)}.`;
}

function dayLines(span: Span, { xOf, zone, bottom }: Pick<Scale, 'xOf' | 'zone'> & { bottom: number }): string[] {
  const days = daysOf(span, { zone, hoursPerCell: 24 });
  const every = Math.ceil(days.length / MOST_DAY_LABELS);
  const room = ((WIDTH - LEFT - RIGHT) / days.length) * every;
  return days.flatMap(({ label, cells: [cell] }, index) => {
    if (!cell || index % every !== 0) return [];
    const x = tenth(xOf(Math.max(cell.fromMs, span.fromMs)));
    const [weekday, number, month] = label.split(' ');
    const text = room >= 70 ? label : `${room >= 36 ? weekday : month} ${number}`;
    return [
      element('line', { class: 'grid', x1: x, x2: x, y1: TOP - 20, y2: bottom }),
      ...(room >= 28 || index % 2 === 0
        ? [element('text', { class: 'dim', x: x + 3, y: TOP - 10 }, escaped(text))]
        : []),
    ];
  });
}

function rowOf({ compute, segments, cuHours }: Outlook, top: number, scale: Scale): string[] {
  const bottom = top + BAR;
  return [
    element('text', { x: 12, y: top + 13 }, escaped(shortened(compute.projectName, 28))),
    element('text', { x: 12, y: top + 27, class: 'dim' }, escaped(shortened(compute.computeId, 30))),
    ...segments.map((segment) => barOf(segment, bottom, scale)),
    element('text', { x: WIDTH - RIGHT + 10, y: top + 20, class: 'dim' }, escaped(`${formatHours(cuHours)} CU-h`)),
  ];
}

function barOf(segment: Segment, bottom: number, { xOf, heightOf, zone }: Scale): string {
  const place = { x: tenth(xOf(segment.fromMs)), width: tenth(xOf(segment.toMs) - xOf(segment.fromMs)) };
  const bar = (cu: number) => ({ ...place, y: tenth(bottom - heightOf(cu)), height: tenth(heightOf(cu)) });
  const never = segment.suspendTimeoutSeconds === NEVER_SUSPENDS;
  const sleep = never ? 'never suspends' : `suspends after ${formatSuspendTimeout(segment.suspendTimeoutSeconds)}`;
  const by = segment.policies.length > 0 ? ` (${segment.policies.join(', ')})` : '';
  const hint = `${formatInstant(segment.fromMs, zone)} to ${formatInstant(segment.toMs, zone)}: ${formatSize(segment)} CU, ${sleep}${by}`;
  return element(
    'g',
    {},
    [
      element('title', {}, escaped(hint)),
      element('rect', { class: 'max', ...bar(segment.maxCu) }),
      element('rect', { class: 'min', ...bar(segment.minCu) }),
      ...(never ? [element('rect', { class: 'awake', ...place, y: bottom + 2, height: LINE })] : []),
    ].join(''),
  );
}
