import type { ControlApiOptions } from '../../src/adapters/control-api/caller.ts';
import type { RateBudget } from '../../src/ports/rate-budget.ts';
import type { Metrics } from '../../src/ports/telemetry.ts';
import { REAL } from '../support/builders.ts';

export const KEY = 'napi_0123456789abcdef0123456789abcdef';

/** Metrics that can be looked at: `name{label=value}` to its value; of histograms the number of samples. */
export function recordingMetrics(): Metrics & { values: Map<string, number> } {
  const values = new Map<string, number>();
  const keyOf = (name: string, labels: Record<string, string>) =>
    `${name}{${Object.entries(labels)
      .map(([label, value]) => `${label}=${value}`)
      .join(',')}}`;
  const add = (key: string, by: number) => values.set(key, (values.get(key) ?? 0) + by);
  return {
    values,
    increment: (name, labels, by = 1) => void add(keyOf(name, labels), by),
    set: (name, labels, value) => void values.set(keyOf(name, labels), value),
    clear: (name) => {
      for (const key of values.keys()) if (key.startsWith(`${name}{`)) values.delete(key);
    },
    observe: (name, labels) => void add(keyOf(name, labels), 1),
  };
}

/** Holds nothing back. */
export const UNLIMITED: RateBudget = {
  acquire: async () => ({ waitedMs: 0, waitUntilDue: async () => true, giveBack() {} }),
  throttled: async () => {},
  answered: () => {},
  stalledMs: () => 0,
  waiting: () => undefined,
  usedRatio: () => 0,
  level: () => 0,
  learnt: () => undefined,
};

/** What a test's client gets unless it says otherwise: one account, no budget, waits of milliseconds. */
export function clientOptions(url: string, more: Partial<ControlApiOptions> = {}): ControlApiOptions {
  return {
    baseUrl: url,
    accounts: [{ name: 'main', key: () => KEY }],
    metrics: recordingMetrics(),
    backoff: { firstMs: 1, longestMs: 4 },
    budget: UNLIMITED,
    ...REAL,
    ...more,
  };
}

const CREATED = '2026-01-02T03:04:05Z';

export function wireProject(id: string, more: object = {}): object {
  return {
    id,
    name: `name of ${id}`,
    region_id: 'aws-eu-central-1',
    created_at: CREATED,
    updated_at: CREATED,
    ...more,
  };
}

export function wireCompute(id: string, more: object = {}): object {
  return {
    id,
    project_id: 'calm-sea-1',
    branch_id: 'br-1',
    region_id: 'aws-eu-central-1',
    type: 'read_write',
    autoscaling_limit_min_cu: 0.25,
    autoscaling_limit_max_cu: 2,
    suspend_timeout_seconds: 0,
    current_state: 'active',
    disabled: false,
    created_at: CREATED,
    updated_at: CREATED,
    last_active: '2026-03-04T05:06:07Z',
    ...more,
  };
}

export function wireOperation(id: string, more: object = {}): object {
  return {
    id,
    project_id: 'calm-sea-1',
    endpoint_id: 'ep-1',
    action: 'apply_config',
    status: 'running',
    failures_count: 0,
    created_at: CREATED,
    updated_at: CREATED,
    total_duration_ms: 12,
    ...more,
  };
}
