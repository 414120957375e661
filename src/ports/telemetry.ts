import type { Compute, ComputeSettings } from '../domain/compute/compute.ts';
import type { CounterName, GaugeName, HistogramName, MetricLabels } from './metrics.ts';

/** The fields of a line; those of the line itself can't be among them: a second `level` would hide how severe it is. */
export type LogFields = { readonly [field: string]: unknown; level?: never; time?: never; msg?: never };

/** Structured, one line for each event. A field named like a secret, and any value that is one, is redacted. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface Metrics {
  increment<N extends CounterName>(name: N, labels: MetricLabels<N>, by?: number): void;
  set<N extends GaugeName>(name: N, labels: MetricLabels<N>, value: number): void;
  /** Drops every series of a gauge, so that deleted ones vanish. */
  clear(name: GaugeName): void;
  observe<N extends HistogramName>(name: N, labels: MetricLabels<N>, value: number): void;
}

/** One compute as the per-compute series show it. */
export interface ComputeSeries {
  compute: Compute;
  /** Absent or null: no value. */
  desired: { minCu: number | null; maxCu: number | null; suspendTimeoutSeconds: number | null };
  baseline: ComputeSettings | undefined;
  owner: string | undefined;
  /** Absent where nothing recent is known. */
  connections?: { now: number; max: number; reserved: number };
}

/** Yields the per-compute series at the moment of a scrape. */
export type ComputeSeriesSource = () => Iterable<ComputeSeries>;

export interface Telemetry {
  log: Log;
  metrics: Metrics;
}
