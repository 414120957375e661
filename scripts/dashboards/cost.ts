import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  ACCOUNT,
  addRow,
  chart,
  labelVariable,
  list,
  numbers,
  OWNER,
  ofOwnedPolicies,
  type Panel,
  startDashboard,
} from './parts.ts';

const USED_ACCOUNT = { ...ACCOUNT, metric: 'ebb_usage_month_cu_seconds' };
const USED_OWNER = { ...OWNER, metric: 'ebb_usage_month_cu_seconds{account=~"$account"}' };

/** Once for each project: for a moment, when one daemon takes over from another, two may export it. */
const USAGE =
  'max by (account, project, owner) (ebb_usage_month_cu_seconds{account=~"$account", owner=~"$owner"}) / 3600';
const PROJECTED = (bound: string) =>
  `sum(max by (account, owner) (ebb_cost_month_projected_usd{account=~"$account", owner=~"$owner", bound="${bound}"}))`;
const DOLLARS = 'max by (account, owner) (ebb_cost_month_to_date_usd{account=~"$account", owner=~"$owner"})';

/** What compute has cost this month, measured. */
export function costDashboard(): DashboardBuilder {
  const dashboard = startDashboard({
    uid: 'ebb-cost',
    title: 'ebb / Cost',
    description: 'Measured compute of this billing month by owner and project. Storage and transfer are not in it.',
  })
    .withVariable(labelVariable(USED_ACCOUNT))
    .withVariable(labelVariable(USED_OWNER));
  addRow(dashboard, 'What ebb did for you', [wouldHaveSaved()]);
  addRow(dashboard, 'This month', month());
  addRow(dashboard, 'Waste', waste());
  addRow(dashboard, 'Budgets', budgets());
  addRow(dashboard, 'How sure that is', certainty());
  return dashboard;
}

function wouldHaveSaved(): Panel {
  return numbers({
    title: 'Enforcing would have saved, CU-hours of two weeks',
    description: 'Measured hours, replayed with the sizes and timeouts that policies want: docs/cost.md.',
    queries: [
      {
        expr: 'sum by (bound) (max by (account, owner, bound) (ebb_counterfactual_saved_cu_seconds{account=~"$account", owner=~"$owner"})) / 3600',
        legend: '{{bound}}',
      },
    ],
    ifEmpty: 'Known while ebb observes; of what is enforced a trial tells: docs/savings.md.',
    width: 24,
  });
}

function month(): Panel[] {
  return [
    numbers({
      title: 'Month to date',
      description: 'US dollars, where the price of a CU-hour is known: docs/cost.md.',
      queries: [{ expr: `sum(${DOLLARS})` }],
      unit: 'currencyUSD',
      width: 6,
    }),
    numbers({
      title: 'CU-hours',
      description: 'Measured compute of this billing month.',
      queries: [{ expr: `sum(${USAGE})` }],
      width: 6,
    }),
    numbers({
      title: 'Whole month, projected',
      description:
        'US dollars, an estimate. Ends are sums of the 80 % intervals of owners, so for several owners they are wider than 80 %.',
      queries: ['low', 'mid', 'high'].map((bound) => ({ expr: PROJECTED(bound), legend: bound })),
      unit: 'currencyUSD',
      width: 6,
    }),
    list({
      title: 'Spend anomalies',
      description: 'CU-hours of yesterday beyond the 99 % interval of that weekday, by owner; 0 where it was ordinary.',
      queries: [{ expr: 'max by (account, owner) (ebb_spend_anomaly_cu_hours{account=~"$account", owner=~"$owner"})' }],
      value: 'CU-hours',
      width: 6,
    }),
    chart({
      title: 'By owner',
      description: 'US dollars of this billing month, as they add up. Corrections of the control API move it.',
      queries: [{ expr: `sum by (owner) (${DOLLARS})`, legend: '{{owner}}' }],
      unit: 'currencyUSD',
      stacked: true,
      width: 12,
    }),
    list({
      title: 'Twenty largest projects',
      description: 'CU-hours of this billing month; "unattributed" is what belongs to none of its branches.',
      queries: [{ expr: `topk(20, ${USAGE})` }],
      value: 'CU-hours',
      width: 24,
    }),
  ];
}

/** Once for each owner, finding and figure: for a moment, when one daemon takes over from another, two may export it. */
const WASTE = (metric: 'usd' | 'cu_hours', bound: 'low' | 'high') =>
  `max by (account, owner, finding, figure) (ebb_waste_month_${metric}{account=~"$account", owner=~"$owner", bound="${bound}"})`;

function waste(): Panel[] {
  const byFigure = (metric: 'usd' | 'cu_hours') =>
    (['low', 'high'] as const).map((bound) => ({
      expr: `sum by (figure) (${WASTE(metric, bound)})`,
      legend: `{{figure}}, ${bound}`,
    }));
  return [
    numbers({
      title: 'What would cost less, dollars a month',
      description:
        'What the findings of ebb recommend would save, by what the figure promises (docs/recommend.md), where prices are known. The page /recommend lists them.',
      queries: byFigure('usd'),
      unit: 'currencyUSD',
      width: 12,
    }),
    numbers({
      title: 'What would cost less, CU-hours a month',
      description: 'The same in CU-hours. Figures promise different things: they are not added up.',
      queries: byFigure('cu_hours'),
      width: 12,
    }),
    list({
      title: 'Waste by owner and finding',
      description: 'CU-hours a month, the high end; what is found anew once a day.',
      queries: [{ expr: `topk(20, ${WASTE('cu_hours', 'high')})` }],
      value: 'CU-hours',
      width: 24,
    }),
  ];
}

function budgets(): Panel[] {
  const ofBudgets = (metric: string, more = '') =>
    `max by (account, policy) ${ofOwnedPolicies(`${metric}{account=~"$account"${more}}`)}`;
  return [
    chart({
      title: 'Budgets',
      description: 'What is spent of the amount for this month, and the middle of what is projected.',
      queries: [
        { expr: ofBudgets('ebb_budget_spent_ratio'), legend: '{{policy}} spent' },
        { expr: ofBudgets('ebb_budget_projected_ratio', ', bound="mid"'), legend: '{{policy}} projected' },
      ],
      unit: 'percentunit',
      width: 16,
    }),
    list({
      title: 'Steps',
      description: 'The highest step of each budget that is reached; 0 if none is.',
      queries: [{ expr: ofBudgets('ebb_budget_step') }],
      value: 'step',
      width: 8,
    }),
  ];
}

function certainty(): Panel[] {
  return [
    chart({
      title: 'Age of usage',
      description: 'Time since the last hour of which anything is known. Two to four hours are usual.',
      queries: [{ expr: 'max by (account) (ebb_usage_age_seconds{account=~"$account"})', legend: '{{account}}' }],
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Unknown hours',
      description: 'Hours of projects in this month that should be known; they are in no sum.',
      queries: [{ expr: 'max by (account) (ebb_usage_unknown_hours{account=~"$account"})', legend: '{{account}}' }],
      width: 8,
    }),
    chart({
      title: 'Corrections, an hour',
      description: 'Hours and days of units whose usage the control API corrected.',
      queries: [
        {
          expr: 'sum by (account) (rate(ebb_usage_corrections_total{account=~"$account"}[$__rate_interval])) * 3600',
          legend: '{{account}}',
        },
      ],
      width: 8,
    }),
  ];
}
