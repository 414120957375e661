import { DAY_MS } from '../../../domain/time/units.ts';
import type {
  BudgetDocument,
  CostDetailDocument,
  CostsDocument,
  DailyDocument,
} from '../../../ports/cost-documents.ts';
import { amountWords, dayWords, percentWords } from './parts.tsx';

/* Charts of costs. Each has a label in words, and its numbers are shown beside it or in a table. */

const WIDTH = 300;

/** Values by day, in dollars if all have a price, else in CU-hours. */
export interface Days {
  firstDay: string;
  values: readonly number[];
  unit: 'usd' | 'cu_hours';
}

/** The sum of all owners' days, or the days of one. */
export function daysOf(detail: CostDetailDocument, owner?: string): Days {
  const owners = detail.owners.filter((days) => owner === undefined || days.owner === owner);
  return { firstDay: detail.first_day, ...summed(owners) };
}

export function summed(all: readonly DailyDocument[]): Pick<Days, 'values' | 'unit'> {
  const unit = all.every(({ usd }) => usd !== null) ? 'usd' : 'cu_hours';
  const length = Math.max(0, ...all.map(({ cu_hours }) => cu_hours.length));
  const valueOn = (day: number) => all.reduce((sum, days) => sum + (days[unit]?.[day] ?? 0), 0);
  return { unit, values: Array.from({ length }, (_, day) => valueOn(day)) };
}

/** The running sum of a month, and its projected end. */
export function MonthLine({ days, costs }: { days: Days; costs: CostsDocument }) {
  const [fromMs, toMs, knownMs] = [costs.from, costs.to, costs.known_until].map((iso) => Date.parse(iso));
  const projected = days.unit === 'usd' ? costs.total.projected_usd : null;
  const now = (days.unit === 'usd' ? costs.total.usd : costs.total.cu_hours) ?? 0;
  if (fromMs === undefined || toMs === undefined || knownMs === undefined || knownMs <= fromMs) return null;
  const top = Math.max(now, projected?.high ?? 0, 0.01);
  const at = (ms: number, value: number) =>
    `${((WIDTH * (ms - fromMs)) / (toMs - fromMs)).toFixed(1)} ${(HEIGHT - (HEIGHT - 4) * (value / top)).toFixed(1)}`;
  let sum = 0;
  const points = days.values.flatMap((value, index) => {
    const endMs = Date.parse(days.firstDay) + (index + 1) * DAY_MS;
    if (endMs <= fromMs || endMs >= knownMs) return [];
    sum += value;
    return [at(endMs, Math.min(sum, now))];
  });
  const last = at(knownMs, now);
  const line = [at(fromMs, 0), ...points, last].join('L');
  const words = `${amountWords(now, days.unit)} from ${dayWords(costs.from)} to ${dayWords(costs.known_until)}${
    projected
      ? `; projected to end at ${amountWords(projected.low, 'usd')} to ${amountWords(projected.high, 'usd')}`
      : ''
  }`;
  return (
    <>
      <svg class="line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words}>
        {projected && (
          <>
            <path class="fan" d={`M${last}L${at(toMs, projected.high)}L${at(toMs, projected.low)}Z`} />
            <path class="ahead" d={`M${last}L${at(toMs, projected.mid)}`} />
          </>
        )}
        <path class="area" d={`M${line}V${HEIGHT}H0Z`} />
        <path class="sum" d={`M${line}`} />
      </svg>
      <p class="ends dim">
        <span>{dayWords(costs.from)}</span> <span>{dayWords(new Date(toMs - 1).toISOString())}</span>
      </p>
    </>
  );
}

const HEIGHT = 64;

/** A bar for each day. Days of the billing month have a stronger color than those before it. */
export function DayBars({ days, from, tall = false }: { days: Days; from: string; tall?: boolean }) {
  const { values, unit, firstDay } = days;
  if (values.length === 0) return <span class="dim">no whole day is known yet</span>;
  const height = tall ? 120 : 24;
  const top = Math.max(...values, 0.01);
  const firstMs = Date.parse(firstDay);
  const highest = values.indexOf(Math.max(...values));
  const dayOf = (index: number) => new Date(firstMs + index * DAY_MS).toISOString();
  const words = `${dayWords(dayOf(0))} to ${dayWords(dayOf(values.length - 1))}, a bar for each day; the highest, ${dayWords(
    dayOf(highest),
  )}, is ${amountWords(values[highest] ?? 0, unit)}, the last ${amountWords(values.at(-1) ?? 0, unit)}`;
  return (
    <svg
      class={tall ? 'bars tall' : 'bars'}
      viewBox={`0 0 ${values.length * 10} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      {values.map((value, index) => {
        const tallness = ((height - 1) * value) / top;
        return (
          <rect
            class={dayOf(index) >= from.slice(0, 10) ? 'min' : 'max'}
            x={index * 10 + 1}
            width="8"
            y={(height - tallness).toFixed(1)}
            height={tallness.toFixed(1)}
          >
            {tall && <title>{`${dayWords(dayOf(index))}: ${amountWords(value, unit)}`}</title>}
          </rect>
        );
      })}
    </svg>
  );
}

/** A budget's bar ends at twice its amount; the number beside it has no limit. */
const MAX_SHARE = 2;

/** The spent part of a budget, the projected interval, and a mark at its amount. */
export function BudgetBar({ budget: { spent, projected, month } }: { budget: BudgetDocument }) {
  const shareOf = (value: number) => Math.min(MAX_SHARE, value / month.amount);
  const x = (value: number) => `${(100 * shareOf(value)) / MAX_SHARE}%`;
  const width = (low: number, high: number) => `${(100 * (shareOf(high) - shareOf(low))) / MAX_SHARE}%`;
  const used = spent ?? 0;
  const words = `${spent === null ? 'price unknown' : `${percentWords(used / month.amount)} spent`}${
    projected
      ? `, ${percentWords(projected.low / month.amount)} to ${percentWords(projected.high / month.amount)} projected`
      : ''
  }`;
  return (
    <svg class="budget" role="img" aria-label={words} width="100%" height="18">
      {projected && <rect class="max" x={x(used)} width={width(used, projected.high)} y="3" height="12" />}
      <rect class="min" x="0" width={x(Math.min(used, month.amount))} y="3" height="12" />
      <rect
        class="over"
        x={x(month.amount)}
        width={width(month.amount, Math.max(used, month.amount))}
        y="3"
        height="12"
      />
      <line class="whole-budget" x1="50%" x2="50%" y1="0" y2="18" />
    </svg>
  );
}

export function isOver({ spent, month }: Pick<BudgetDocument, 'spent' | 'month'>): boolean {
  return spent !== null && spent > month.amount;
}

/** Shown where usage was not measured, so that there are no costs. */
export function NotMeasured() {
  return (
    <p class="dim">
      Nothing is measured yet: the leader reads usage soon after its start, then every hour. It needs an organization on
      a paid plan and a key that is not scoped to a project.
    </p>
  );
}
