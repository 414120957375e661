import type { Compute, ComputeSettings } from '../domain/compute/compute.ts';
import type { CounterName, GaugeName, HistogramName, MetricLabels } from './metrics.ts';

/** Excludes the fields that the logger writes: a second `level` would hide the severity. */
export type LogFields = { readonly [field: string]: unknown; level?: never; time?: never; msg?: never };

/** Structured, one line per event. A field named like a secret, and any value that is one, is redacted. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface Metrics {
  increment<N extends CounterName>(name: N, labels: MetricLabels<N>, by?: number): void;
  set<N extends GaugeName>(name: N, labels: MetricLabels<N>, value: number): void;
  /** Drops every series of a gauge. */
  clear(name: GaugeName): void;
  observe<N extends HistogramName>(name: N, labels: MetricLabels<N>, value: number): void;
}

/** The values of a compute's metrics. */
export interface ComputeSeries {
  compute: Compute;
  /** Null: no value. */
  desired: { minCu: number | null; maxCu: number | null; suspendTimeoutSeconds: number | null };
  baseline: ComputeSettings | undefined;
  owner: string | undefined;
  /** Absent without a recent count. */
  connections?: { now: number; max: number; reserved: number };
}

/** Called for each scrape. */
export type ComputeSeriesSource = () => Iterable<ComputeSeries>;

export interface Telemetry {
  log: Log;
  metrics: Metrics;
}
