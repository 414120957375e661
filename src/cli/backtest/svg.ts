import { countedComputes } from '../../common/names.ts';
import type { Backtest } from '../../domain/backtest/backtest.ts';
import type { ReplayedChange, Stretch } from '../../domain/backtest/replay.ts';
import { formatSize } from '../../domain/compute/compute-units.ts';
import type { Span } from '../../domain/time/span.ts';
import { formatInstant, formatSpan } from '../forecast/local-time.ts';
import { shortened } from '../output.ts';
import { element, escaped, svgDrawing, tenth, timeAxis, timeTicks } from '../svg-elements.ts';

const WIDTH = 1200;
const LEFT = 60;
const RIGHT = 20;
const TOP = 48;
const PANEL = 200;
const HEAD = 36;
const FOOT = 40;

/** More computes than these would not be readable in one drawing. */
const MAX_DRAWN = 20;

const STYLE = `.usable{fill:none;stroke:#b4531a;stroke-width:1.5}.demand{fill:#9cc2e5;stroke:#3b73ad}.unknown{fill:#eef1f4}
.raise{fill:#2f7d32}.lower{fill:#616e7c}
@media(prefers-color-scheme:dark){.usable{stroke:#f0a36b}.demand{fill:#2c5a85;stroke:#7fb2e5}.unknown{fill:#2a343f}
.raise{fill:#6cc070}.lower{fill:#9aa5b1}}`;

const LEGEND = [
  { name: 'demand', text: 'connections wanted' },
  { name: 'usable', text: 'what the size gives to users' },
  { name: 'raise', text: 'raised' },
  { name: 'lower', text: 'lowered' },
  { name: 'unknown', text: 'not known' },
];

interface Scale extends Span {
  /** The y coordinates of the highest number and of 0. */
  top: number;
  bottom: number;
  xOf(ms: number): number;
  yOf(connections: number): number;
  zone: string;
}

/**
 * A chart of the first computes, each with the wanted connections, the connections that its size gives under the policy as written,
 * and a mark for each change.
 */
export function drawBacktest({ computes }: Backtest, options: Span & { zone: string; policy: string }): string {
  const { policy, zone, ...span } = options;
  const drawn = computes.slice(0, MAX_DRAWN);
  const height = TOP + drawn.length * (PANEL + HEAD) + FOOT;
  const many = computes.length;
  const on = drawn.length < many ? `the first ${drawn.length} of ` : '';
  const title = `${policy} on ${on}${countedComputes(many)}, ${formatSpan(span, zone)}`;
  return svgDrawing(
    { width: WIDTH, height, title, style: STYLE, legend: LEGEND, left: LEFT },
    drawn.flatMap((one, index) => panelOf(one, TOP + index * (PANEL + HEAD), { ...span, zone })),
  );
}

function panelOf(
  { recording, stretches, changes }: Backtest['computes'][number],
  top: number,
  { fromMs, toMs, zone }: Span & { zone: string },
): string[] {
  const bottom = top + HEAD + PANEL - 24;
  const highest = stretches.reduce((most, { usable, demand = 0 }) => Math.max(most, usable, demand), 1);
  const scale: Scale = {
    fromMs,
    toMs,
    zone,
    top: top + HEAD,
    bottom,
    xOf: (ms) => tenth(LEFT + ((ms - fromMs) / (toMs - fromMs)) * (WIDTH - LEFT - RIGHT)),
    yOf: (connections) => tenth(bottom - (connections / highest) * (bottom - top - HEAD)),
  };
  return [
    element('text', { x: 12, y: top + 14 }, escaped(shortened(recording.compute.computeId, 60))),
    ...[0, Math.round(highest / 2), highest].map((count) =>
      element('text', { class: 'dim', x: LEFT - 6, y: scale.yOf(count) + 4, 'text-anchor': 'end' }, `${count}`),
    ),
    ...timeAxis(timeTicks(scale, zone), { xOf: scale.xOf, top: scale.top, bottom, labels: [bottom + 14] }),
    ...unknowns(stretches, scale),
    element('path', { class: 'demand', d: demandPath(stretches, scale) }),
    element('path', { class: 'usable', d: usablePath(stretches, scale) }),
    ...changes.map((change) => mark(change, scale)),
  ];
}

/** Draws the highest demand of each pixel, since a recording has more counts than a drawing has pixels. */
function demandPath(stretches: readonly Stretch[], { xOf, yOf }: Scale): string {
  const columns = new Map<number, number>();
  for (const { fromMs, toMs, demand = 0 } of stretches) {
    for (let x = Math.floor(xOf(fromMs)); x < Math.max(xOf(toMs), Math.floor(xOf(fromMs)) + 1); x += 1) {
      columns.set(x, Math.max(columns.get(x) ?? 0, demand));
    }
  }
  const points = [...columns].sort(([a], [b]) => a - b);
  const steps = points.filter(([, demand], index) => demand !== points[index - 1]?.[1]);
  const last = (points.at(-1)?.[0] ?? LEFT) + 1;
  return `M${steps[0]?.[0] ?? LEFT} ${yOf(0)}${steps.map(([x, demand]) => `H${x}V${yOf(demand)}`).join('')}H${last}V${yOf(0)}Z`;
}

function usablePath(stretches: readonly Stretch[], { xOf, yOf }: Scale): string {
  const steps = stretches.filter(({ usable }, index) => usable !== stretches[index - 1]?.usable);
  const [first, ...others] = steps;
  if (!first) return '';
  const rest = others.map(({ fromMs, usable }) => `H${xOf(fromMs)}V${yOf(usable)}`).join('');
  return `M${xOf(first.fromMs)} ${yOf(first.usable)}${rest}H${xOf(stretches.at(-1)?.toMs ?? first.toMs)}`;
}

function unknowns(stretches: readonly Stretch[], { xOf, top, bottom }: Scale): string[] {
  return stretches
    .filter(({ demand }) => demand === undefined)
    .map(({ fromMs, toMs }) => {
      const x = xOf(fromMs);
      return element('rect', { class: 'unknown', x, width: tenth(xOf(toMs) - x), y: top, height: bottom - top });
    });
}

function mark({ atMs, before, after, raises, dropped, policy }: ReplayedChange, { xOf, zone, top }: Scale): string {
  const [x, y] = [xOf(atMs), top - 12];
  const points = raises ? `${x},${y} ${x - 4},${y + 8} ${x + 4},${y + 8}` : `${x},${y + 8} ${x - 4},${y} ${x + 4},${y}`;
  const hint = `${formatInstant(atMs, zone)}: ${formatSize(before)} to ${formatSize(after)} CU by ${policy}, ${dropped} disconnected`;
  const title = element('title', {}, escaped(hint));
  return element('polygon', { class: raises ? 'raise' : 'lower', points }, title);
}
