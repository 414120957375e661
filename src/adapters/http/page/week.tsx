import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { DAY_MS, HOUR_MS } from '../../../domain/time/units.ts';
import type { SegmentDocument, WeekDocument } from '../../../ports/status-page.ts';
import { instantWords, plural, sizeWords, suspendWords, Table, timeoutWords } from './parts.tsx';

const WEEK_HOURS = 168;
const BAND_HEIGHT = 24;
const CHART_HEIGHT = 120;

/** The base of the logarithmic scale: half of the smallest size, so that the smallest size is visible. */
const FLOOR_CU = 0.125;

const ABSENT = {
  not_yet: 'not worked out yet',
  too_often: 'a policy changes too often to draw it',
} as const;

/** Renders each distinct week once: a fleet has few, and they are most of a page. */
export function weekBands(now: string): (week: WeekDocument) => Child {
  const drawn = new Map<WeekDocument, Child>();
  return (week) => {
    const band = drawn.get(week) ?? raw(`${<WeekBand week={week} now={now} />}`);
    drawn.set(week, band);
    return band;
  };
}

/** The week of one compute in a row of a table. */
function WeekBand({ week, now }: { week: WeekDocument; now: string }) {
  if (week.state !== 'known') return <span class="dim">{ABSENT[week.state]}</span>;
  const { segments } = week;
  const top = Math.max(...segments.map(({ max_cu }) => level(max_cu)), level(1));
  const path = (cuOf: (segment: SegmentDocument) => number) => {
    const steps = segments.map((segment) => {
      const y = BAND_HEIGHT * (1 - level(cuOf(segment)) / top);
      return `V${y.toFixed(1)}H${hoursFrom(now, segment.to).toFixed(1)}`;
    });
    return `M0 ${BAND_HEIGHT}${steps.join('')}V${BAND_HEIGHT}Z`;
  };
  return (
    <svg
      class="band"
      viewBox={`0 0 ${WEEK_HOURS} ${BAND_HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={bandWords(segments)}
    >
      <path class="max" d={path(({ max_cu }) => max_cu)} />
      <path class="min" d={path(({ min_cu }) => min_cu)} />
    </svg>
  );
}

/** The week of one compute, large, and as a table. */
export function WeekChart({ week, now }: { week: WeekDocument; now: string }) {
  if (week.state !== 'known') return <p class="dim">The week ahead: {ABSENT[week.state]}.</p>;
  const { segments } = week;
  const most = Math.max(...segments.map(({ max_cu }) => max_cu), 1);
  const least = Math.min(...segments.map(({ min_cu }) => min_cu));
  return (
    <>
      <svg class="chart" width="100%" height={CHART_HEIGHT + 20} role="img" aria-label={bandWords(segments)}>
        {segments.map((segment) => (
          <ChartSegment segment={segment} now={now} most={most} />
        ))}
        {midnights(now).map(({ x, name }) => (
          <>
            <line class="midnight" x1={x} x2={x} y1="0" y2={CHART_HEIGHT} />
            <text x={x} y={CHART_HEIGHT + 15} dx="4">
              {name}
            </text>
          </>
        ))}
      </svg>
      <p class="legend">
        <span class="key min" /> minimum <span class="key max" /> maximum, {least} to {most} CU, each step twice the one
        below; <span class="key never" /> never suspends
      </p>
      <details id="week-table">
        <summary>The week as a table</summary>
        <Table
          caption="What is foreseen if policies stay as they are"
          head={['From', 'Size', 'Suspends after', 'Decided by']}
          rows={segments.map((segment) => [
            instantWords(segment.from, now),
            sizeWords(segment),
            timeoutWords(segment.suspend_timeout_seconds),
            segment.policies.join(', ') || 'nobody',
          ])}
        />
      </details>
    </>
  );
}

function ChartSegment({ segment, now, most }: { segment: SegmentDocument; now: string; most: number }) {
  const x = percent(hoursFrom(now, segment.from));
  const width = percent(hoursFrom(segment.from, segment.to));
  const heightOf = (cu: number) => ((CHART_HEIGHT - 6) * level(cu)) / level(most);
  const bar = (kind: string, height: number) => (
    <rect class={kind} x={x} width={width} y={CHART_HEIGHT - height} height={height} />
  );
  const settings = `${sizeWords(segment)}, ${suspendWords(segment.suspend_timeout_seconds)}`;
  return (
    <g>
      <title>{`${instantWords(segment.from, now)}: ${settings}`}</title>
      {bar('max', heightOf(segment.max_cu))}
      {bar('min', heightOf(segment.min_cu))}
      {segment.suspend_timeout_seconds === -1 && <rect class="never" x={x} width={width} y="0" height="4" />}
    </g>
  );
}

/** For screen readers. */
function bandWords(segments: readonly SegmentDocument[]): string {
  const least = Math.min(...segments.map(({ min_cu }) => min_cu));
  const most = Math.max(...segments.map(({ max_cu }) => max_cu));
  const changes = segments.length - 1;
  return `Week ahead: ${changes === 0 ? 'no change' : plural(changes, 'change')}, ${least} to ${most} CU`;
}

function midnights(now: string): { x: string; name: string }[] {
  const first = Math.ceil(Date.parse(now) / DAY_MS) * DAY_MS;
  return Array.from({ length: 7 }, (_, day) => {
    const iso = new Date(first + day * DAY_MS).toISOString();
    const [name = ''] = instantWords(iso, now).split(' ');
    return { x: percent(hoursFrom(now, iso)), name: name.includes(':') || name.includes('-') ? '' : name };
  });
}

function level(cu: number): number {
  return Math.log2(cu / FLOOR_CU);
}

function hoursFrom(start: string, end: string): number {
  return (Date.parse(end) - Date.parse(start)) / HOUR_MS;
}

function percent(hours: number): string {
  return `${((100 * hours) / WEEK_HOURS).toFixed(2)}%`;
}
