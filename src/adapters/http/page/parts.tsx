import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { mapInTurns } from '../../../common/in-turns.ts';
import { formatSize, formatSuspendTimeout } from '../../../domain/compute/compute-units.ts';
import { formatUsd } from '../../../domain/compute/cost.ts';
import { savedRange, savingOrCost } from '../../../domain/estimate.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../domain/time/units.ts';
import type { CostsDocument } from '../../../ports/cost-documents.ts';
import {
  type FreezeDocument,
  type HoldDocument,
  MAX_LISTED,
  type OperationDocument,
  type SettingsDocument,
} from '../../../ports/documents.ts';
import { TURNS } from '../api/answer.ts';

/** An instant, or a span up to `until` within an hour, and its distance from now. */
export function Instant({ iso, until = iso, now }: { iso: string; until?: string; now: string }) {
  return (
    <>
      <time datetime={iso}>{instantWords(iso, now)}</time>
      {minuteOf(until) !== minuteOf(iso) && (
        <>
          –
          <time datetime={until} data-clock="">
            {until.slice(11, 16)}
          </time>
        </>
      )}
      <span class="dim"> {distanceWords(iso, now)}</span>
    </>
  );
}

function minuteOf(iso: string): string {
  return iso.slice(0, 16);
}

/** An instant to the minute, in UTC until the script converts it to local time. */
export function Minute({ iso }: { iso: string }) {
  return <time datetime={iso}>{minuteOf(iso).replace('T', ' ')} UTC</time>;
}

const INSTANT = /(\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A reason's text, whose instants become times, with their distance from `now` if that is given. */
export function Message({ text, now }: { text: string; now?: string }) {
  const time = (iso: string) => (now === undefined ? <Minute iso={iso} /> : <Instant iso={iso} now={now} />);
  return <>{text.split(INSTANT).map((part, index) => (index % 2 === 1 ? time(part) : part))}</>;
}

export function Badge({ kind }: { kind: string }) {
  return <span class={`badge ${kind}`}>{kind.replaceAll('_', ' ')}</span>;
}

/** A path with a query of the parameters that have a value. */
export function addressOf(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(set.map(([key, value]): [string, string] => [key, String(value)])).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** A labelled field of a filter form. */
export function Select(props: {
  name: string;
  label: string;
  value: string;
  options: readonly (readonly [value: string, words: string])[];
}) {
  const { name, label, value, options } = props;
  return (
    <span class="choice">
      <label for={name}>{label}</label>
      <select id={name} name={name}>
        {options.map(([option, words]) => (
          <option value={option} selected={option === value}>
            {words}
          </option>
        ))}
      </select>
    </span>
  );
}

/** Links to the previous and the next page (from 1), if there are several. `of` says of what. */
export function PageLinks(props: { of: string; page: number; pages: number; linkTo(page: number): string }) {
  const { of, page, pages, linkTo } = props;
  if (pages <= 1) return null;
  return (
    <nav aria-label={`Pages of ${of}`} class="pages">
      {page > 1 && <a href={linkTo(page - 1)}>Previous</a>}
      <span>
        page {page} of {pages}
      </span>
      {page < pages && <a href={linkTo(page + 1)}>Next</a>}
    </nav>
  );
}

/** A part of a page that the script replaces when it has changed. */
export function Section({ id, title, children }: { id: string; title: string; children: Child }) {
  return (
    <section aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      <div id={id} data-live>
        {children}
      </div>
    </section>
  );
}

interface TableProps {
  caption: string;
  head: readonly string[];
  rows: readonly (readonly Child[])[];
}

/** A table; on narrow screens a list of cards, where each cell shows the name of its column. */
export function Table({ caption, head, rows }: TableProps) {
  return (
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {head.map((name) => (
            <th scope="col">{name}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Rows head={head} rows={rows} />
      </tbody>
    </table>
  );
}

/** Rows are rendered one by one, with turns of the event loop, since there may be thousands. */
async function Rows({ head, rows }: Pick<TableProps, 'head' | 'rows'>) {
  const drawRow = ([first, ...cells]: TableProps['rows'][number]) =>
    raw(
      `${(
        <tr>
          <th scope="row">{first}</th>
          {cells.map((cell, index) => (
            <td data-label={head[index + 1]}>
              <div>{cell}</div>
            </td>
          ))}
        </tr>
      )}`,
    );
  const drawn = await mapInTurns(rows, drawRow, TURNS);
  return <>{drawn}</>;
}

export function ComputeLink({ id }: { id: string }) {
  return <a href={`/computes/${id}`}>{id}</a>;
}

export function Operations({ operations, now }: { operations: readonly OperationDocument[]; now: string }) {
  if (operations.length === 0) return <p class="dim">None that ebb has started.</p>;
  return (
    <Table
      caption="Operations in flight"
      head={['Compute', 'Action', 'Since', 'Policy']}
      rows={operations.map(({ compute_id, action, started_at, policy }) => [
        <ComputeLink id={compute_id} />,
        action,
        <Instant iso={started_at} now={now} />,
        policy ?? '–',
      ])}
    />
  );
}

/* Values of documents in words. Instants are UTC. */

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** `1-4 CU`, or words for no value. */
export function sizeWords({ min_cu: minCu, max_cu: maxCu }: Omit<SettingsDocument, 'suspend_timeout_seconds'>): string {
  return minCu === null || maxCu === null ? 'as it is' : `${formatSize({ minCu, maxCu })} CU`;
}

export function timeoutWords(seconds: number | null): string {
  return seconds === null ? 'as it is' : formatSuspendTimeout(seconds);
}

export function suspendWords(seconds: number | null): string {
  if (seconds === null) return 'suspends as it does';
  return seconds === -1 ? 'never suspends' : `suspends after ${timeoutWords(seconds)}`;
}

/** The time for today, weekday and time for the next seven days, else date and time. */
export function instantWords(iso: string, nowIso: string): string {
  const [date = '', time = ''] = iso.split('T');
  const clock = time.slice(0, 5);
  const awayMs = Date.parse(iso) - Date.parse(nowIso);
  if (iso.slice(0, 10) === nowIso.slice(0, 10)) return clock;
  if (awayMs > 0 && awayMs < 7 * DAY_MS) return `${DAYS[new Date(iso).getUTCDay()]} ${clock}`;
  return `${date} ${clock}`;
}

/** `in 2 h 15 min`, `3 d ago`. */
function distanceWords(iso: string, nowIso: string): string {
  const awayMs = Date.parse(iso) - Date.parse(nowIso);
  const length = durationWords(Math.abs(awayMs));
  return awayMs < 0 ? `${length} ago` : `in ${length}`;
}

/** `45 s`, `12 min`, `2 h 15 min`, `3 d 4 h`. */
function durationWords(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  const [largeMs, large, smallMs, small] =
    ms < DAY_MS ? ([HOUR_MS, 'h', MINUTE_MS, 'min'] as const) : ([DAY_MS, 'd', HOUR_MS, 'h'] as const);
  const rest = Math.floor((ms % largeMs) / smallMs);
  return `${Math.floor(ms / largeMs)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`;
}

export function holdWords({ size, suspend_timeout_seconds: timeout, freeze, limited }: HoldDocument): string {
  const parts = [
    ...(size ? [sizeWords(size)] : []),
    ...(timeout === null ? [] : [suspendWords(timeout)]),
    ...(freeze ? ['kept as it is'] : []),
    ...(limited === null ? [] : [limited]),
  ];
  return parts.join(', ');
}

export function freezeWords({ select, allow_raise }: FreezeDocument): string {
  const raises = allow_raise ? ', raises allowed' : '';
  if (select === 'all') return `all computes${raises}`;
  const keys = Object.entries(select).filter(([key]) => key !== 'minAgeMs');
  return `${keys.map(([key, value]) => `${key} ${[value].flat().join(', ')}`).join('; ')}${raises}`;
}

/** `toLocaleString` would make a format for each of the thousands of numbers of a page. */
const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** `1,234.5`. */
export function numberWords(value: number): string {
  return NUMBER.format(value);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${numberWords(count)} ${count === 1 ? one : many}`;
}

/** The number of entries of a list of the status, which may have been cut: `100 or more computes`. */
export function listedCount(count: number, one: string, many?: string): string {
  return count < MAX_LISTED ? plural(count, one, many) : plural(count, one, many).replace(' ', ' or more ');
}

/** `$1,234`, `$12.30` (cents below a hundred), `1,234.5 CU-hours`. */
export function amountWords(value: number, unit: 'usd' | 'cu_hours'): string {
  if (unit === 'cu_hours') return `${numberWords(value >= 100 ? Math.round(value) : value)} CU-hours`;
  return Math.abs(value) < 100 ? formatUsd(value) : formatUsd(Math.round(value)).replace(/\.00$/, '');
}

/** `145 %`, never broken into two lines. */
export function percentWords(share: number): string {
  return `${numberWords(Math.round(100 * share))}\u00a0%`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `3 Nov`, in UTC. */
export function dayWords(iso: string): string {
  const at = new Date(iso);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

type Costs = CostsDocument['total'];

/** `$40 to $52 projected`, or the reason for no projection. */
export function projectedWords({ usd, projected_usd: projected, not_projected: why }: Costs): string {
  if (usd === null) return 'price unknown: set plan: in ebb.yaml';
  if (projected) return `${amountWords(projected.low, 'usd')} to ${amountWords(projected.high, 'usd')} projected`;
  return why ? WHY_NOT[why] : 'not projected yet';
}

const WHY_NOT = {
  too_few_days: 'not projected: less than a week is known',
  too_wide: 'not projected: too uncertain',
};

/** `$12.30 so far, $40 to $52 projected`; CU-hours if the price is unknown. */
export function costWords({ cu_hours: hours, usd, projected_usd: projected, not_projected: why }: Costs): string {
  if (usd === null) return `${hours.toLocaleString('en')} CU-hours so far, price unknown: set plan: in ebb.yaml`;
  const month = projected
    ? `, ${formatUsd(projected.low)} to ${formatUsd(projected.high)} projected`
    : why && `, ${WHY_NOT[why]}`;
  return `${formatUsd(usd)} so far${month ?? ''}`;
}

/** The saving that enforcing would have made or, if it is negative, the cost: `$25.10 ($12.30 to $40.00)`; CU-hours if the price is unknown. */
export function WouldHaveSaved({ cu_hours: hours, usd }: NonNullable<CostsDocument['would_have_saved']>) {
  const unit = usd ? 'usd' : 'cu_hours';
  const saving = usd ?? hours;
  const { isCost, low, mid, high } = savingOrCost(saving);
  const words = (value: number) => amountWords(value, unit);
  const range = low < 0 ? savedRange(saving, words) : `${words(low)} to ${words(high)}`;
  return (
    <p>
      <strong class="figure">{mid === undefined ? range : `${amountWords(mid, unit)} (${range})`}</strong>{' '}
      {isCost ? 'more would have been spent' : 'would have been saved'} by enforcing in the last two weeks
    </p>
  );
}
