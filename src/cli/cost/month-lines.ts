import { printable } from '../../common/safe-text.ts';
import { formatUsd } from '../../domain/compute/cost.ts';
import type { Answer } from '../operator/access.ts';

type Costs = Answer<'status'>['costs'];
type Amount = NonNullable<Costs>['total'];

const MOST_OWNERS = 10;

const WHY_UNKNOWN = {
  too_few_days: ': it is projected from a week of known days on',
  too_wide: ': its days vary too much',
  unsaid: '',
};

/** This month's cost, one line for each owner; empty while nothing was measured. */
export function costLines(costs: Costs): string[] {
  if (costs === null) return [];
  const { owners, total, from, known_until: until } = costs;
  const shown = owners.slice(0, MOST_OWNERS).map((one) => `  ${printable(one.owner)}: ${amountText(one)}`);
  const more = owners.length > MOST_OWNERS ? [`  and ${owners.length - MOST_OWNERS} more: ebb cost`] : [];
  const anomalies = owners.flatMap(({ owner, anomaly }) =>
    anomaly
      ? [
          `spend anomaly: ${printable(owner)} used ${anomaly.cu_hours} CU-hours on ${anomaly.day}, ordinarily at most ${anomaly.ordinary_cu_hours}`,
        ]
      : [],
  );
  return [
    ...anomalies,
    `compute since ${from.slice(0, 10)} (${until < from ? 'nothing known yet' : `known until ${until.slice(0, 16)}Z`}): ${amountText(total)}`,
    ...shown,
    ...more,
    ...savedLines(costs.would_have_saved ?? null),
  ];
}

/** In observe mode. */
function savedLines(saved: NonNullable<Costs>['would_have_saved']): string[] {
  if (saved === null) return [];
  const { cu_hours: hours, usd, used_cu_hours: used } = saved;
  const dollars = usd ? estimateText(usd, formatUsd) : 'an unknown amount of dollars (set plan: in ebb.yaml)';
  const inHours = (one: typeof hours) => estimateText(one, String);
  const parts = saved.parts.map(({ part, figure, cu_hours: own }) =>
    figure === 'unknown' ? `by ${part} unknown` : `by ${part} ${inHours(own)} (${figure.replace('_', ' ')})`,
  );
  const of = `${saved.computes} ${saved.computes === 1 ? 'compute' : 'computes'} with known usage`;
  return [
    `enforcing would have saved ${dollars} in the last two weeks, of ${of}`,
    `in CU-hours: ${inHours(hours)} of ${used} used: ${parts.join(', ')}`,
  ];
}

/** `12 (8 to 20)`: what is expected first, where it is known. */
function estimateText(
  { low, mid, high }: { low: number; mid?: number | undefined; high: number },
  format: (value: number) => string,
) {
  const range = `${format(low)} to ${format(high)}`;
  return mid === undefined ? range : `${format(mid)} (${range})`;
}

/** `$12.30 so far, $40.00 to $52.10 by the end of the month`. */
function amountText({
  cu_hours: hours,
  usd,
  unknown_hours: unknown,
  projected_usd: projected,
  ...rest
}: Amount): string {
  const unknownText = unknown > 0 ? `, ${Math.round(unknown)} hours unknown` : '';
  if (usd === null) return `${hours} CU-hours so far${unknownText}, price unknown: set plan: in ebb.yaml`;
  const month = projected
    ? `, ${formatUsd(projected.low)} to ${formatUsd(projected.high)} by the end of the month`
    : `, the whole month unknown yet${WHY_UNKNOWN[rest.not_projected ?? 'unsaid']}`;
  return `${formatUsd(usd)} so far${unknownText}${month}`;
}
