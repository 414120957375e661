const OF_OWNER = ['account', 'owner'] as const;
/** `bound`: the middle, or an end of an interval. */
const BOUND_OF_OWNER = [...OF_OWNER, 'bound'] as const;
const OF_POLICY = ['account', 'policy'] as const;
const OF_FINDING = [...OF_OWNER, 'finding', 'figure', 'bound'] as const;

/** A part of `METRICS` in metrics.ts. Only the leader exports them. */
export const USAGE_METRICS = {
  ebb_usage_month_cu_seconds: {
    type: 'gauge',
    help: 'Measured CU-seconds of this billing month, by project and owner; corrections change it. Only the leader exports it.',
    labels: ['account', 'project', 'owner'],
  },
  ebb_usage_age_seconds: {
    type: 'gauge',
    help: 'Time since the end of the last hour of which the usage of the account is known.',
    labels: ['account'],
  },
  ebb_usage_unknown_hours: {
    type: 'gauge',
    help: 'Hours of projects in this billing month whose usage should be known and is not.',
    labels: ['account'],
  },
  ebb_usage_corrections_total: {
    type: 'counter',
    help: 'Hours and days of units whose usage was corrected after it had been read.',
    labels: ['account'],
  },
  ebb_cost_month_to_date_usd: {
    type: 'gauge',
    help: 'US dollars for the measured compute of this billing month, where prices are known; without storage and transfer.',
    labels: OF_OWNER,
  },
  ebb_cost_month_projected_usd: {
    type: 'gauge',
    help: 'Projected US dollars for the compute of this whole billing month: the middle, and an interval of 80 %.',
    labels: BOUND_OF_OWNER,
  },
  ebb_counterfactual_saved_cu_seconds: {
    type: 'gauge',
    help: 'In observe mode: CU-seconds that enforcing would have saved of the measured hours of the last two weeks.',
    labels: BOUND_OF_OWNER,
  },
  ebb_budget_spent_ratio: {
    type: 'gauge',
    help: 'What a budget has spent this billing month, as a share of its amount.',
    labels: OF_POLICY,
  },
  ebb_budget_projected_ratio: {
    type: 'gauge',
    help: 'What a budget will probably have spent at the end of this month, as a share of its amount: the middle, and an interval of 80 %.',
    labels: ['account', 'policy', 'bound'],
  },
  ebb_budget_step: {
    type: 'gauge',
    help: 'The highest step of a budget that is reached, from 1 on; 0 if none is.',
    labels: OF_POLICY,
  },
  ebb_spend_anomaly_cu_hours: {
    type: 'gauge',
    help: 'CU-hours of yesterday (UTC) beyond the 99 % interval of that weekday; 0 where it was ordinary or too little is known.',
    labels: OF_OWNER,
  },
  ebb_waste_month_cu_hours: {
    type: 'gauge',
    help: 'CU-hours a month that the findings of ebb recommend would save: the middle, the low and the high end. Do not add up different figures. Only the leader exports it.',
    labels: OF_FINDING,
  },
  ebb_waste_month_usd: {
    type: 'gauge',
    help: 'US dollars a month that findings would save, where prices are known; as ebb_waste_month_cu_hours.',
    labels: OF_FINDING,
  },
} as const;
