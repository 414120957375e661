import { setImmediate as nextTurn } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { COMPUTE_STATES } from '../../domain/compute/compute.ts';
import { METRICS, type MetricDeclaration } from '../../ports/metrics.ts';
import type { ComputeSeries, ComputeSeriesSource, Metrics, Telemetry } from '../../ports/telemetry.ts';
import { createLog, type LogOptions } from './log.ts';
import { createRedactor } from './redactor.ts';

export interface TelemetryOptions {
  level: LogOptions['level'];
  version: string;
  /** Values to redact in the log and in metrics. */
  secrets: readonly string[];
  /** The log's destination; standard output by default. */
  destination?: LogOptions['destination'];
  /** Log for people instead of JSON. Default: when the log goes to standard output and that is a terminal. */
  pretty?: boolean;
  /** Series for each compute. Default: true. */
  perComputeMetrics?: boolean;
}

export interface ProcessTelemetry extends Telemetry {
  /** The body of /metrics, in the Prometheus text format. */
  text(): Promise<{ contentType: string; body: string }>;
  /** Sets the source of the series of each compute. */
  seriesFrom(source: ComputeSeriesSource): void;
  /** Redacts one more value, e.g. a rotated key. */
  hide(secret: string): void;
}

/** The log and metrics of one process. Two instances share only standard output. */
export function createTelemetry(options: TelemetryOptions): ProcessTelemetry {
  const { level, version, secrets, destination, perComputeMetrics = true } = options;
  const { pretty = destination === undefined && process.stdout.isTTY === true } = options;
  const redactor = createRedactor(secrets);
  const { registry, metrics } = createMetrics(version);
  let source: ComputeSeriesSource | undefined;
  return {
    log: createLog({ level, destination, pretty, redact: redactor.redact }),
    metrics,
    hide: redactor.hide,
    seriesFrom(newSource) {
      if (perComputeMetrics) source = newSource;
    },
    async text() {
      const ofProcess = redactor.redact(await registry.metrics());
      const ofComputes = source === undefined ? [] : await renderComputeSeries(source, redactor.redact);
      return { contentType: registry.contentType, body: [ofProcess, ...ofComputes].join('') };
    },
  };
}

/** Default metrics of prom-client: gauges with `_total`, which `promtool check metrics` rejects. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

interface Instruments {
  counters: Map<string, Counter>;
  gauges: Map<string, Gauge>;
  histograms: Map<string, Histogram>;
}

/** A registry with the metrics of ebb and of Node. */
function createMetrics(version: string): { registry: Registry; metrics: Metrics } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const instruments: Instruments = { counters: new Map(), gauges: new Map(), histograms: new Map() };
  for (const [name, declaration] of Object.entries<MetricDeclaration>(METRICS)) {
    declare(instruments, registry, name, declaration);
  }
  const metrics = recordingInto(instruments);
  metrics.set('ebb_build_info', { version }, 1);
  return { registry, metrics };
}

function declare(
  { counters, gauges, histograms }: Instruments,
  registry: Registry,
  name: string,
  { type, help, labels, buckets = [], zero = [] }: MetricDeclaration,
): void {
  const common = { name, help, labelNames: labels, registers: [registry] };
  switch (type) {
    case 'counter': {
      const counter = new Counter(common);
      for (const set of zero) counter.inc(set, 0);
      counters.set(name, counter);
      return;
    }
    case 'gauge': {
      const gauge = new Gauge(common);
      for (const set of zero) gauge.set(set, 0);
      gauges.set(name, gauge);
      return;
    }
    case 'histogram': {
      const histogram = new Histogram({ ...common, buckets: [...buckets] });
      for (const set of zero) histogram.zero(set);
      histograms.set(name, histogram);
    }
  }
}

/** Ignores values that are not finite, and decreases of counters: recording a value must never fail the work that it measures. */
function recordingInto({ counters, gauges, histograms }: Instruments): Metrics {
  return {
    increment(name, labels, by = 1) {
      if (by >= 0 && Number.isFinite(by)) counters.get(name)?.inc(labels, by);
    },
    set(name, labels, value) {
      if (Number.isFinite(value)) gauges.get(name)?.set(labels, value);
    },
    observe(name, labels, value) {
      if (Number.isFinite(value)) histograms.get(name)?.observe(labels, value);
    },
    clear(name) {
      const gauge = gauges.get(name);
      const { zero = [] }: MetricDeclaration = METRICS[name];
      gauge?.reset();
      for (const set of zero) gauge?.set(set, 0);
    },
  };
}

/** Computes rendered in one turn of the event loop, in about a millisecond. */
const CHUNK = 250;

/** Ids, which never change; {@link COMPUTE_METRICS.ebb_compute_info} has the names. */
const IDENTITY = ['project', 'compute'] as const;

/** The series of each compute, rendered from the source at each scrape, so that they vanish with their compute. */
export const COMPUTE_METRICS = {
  ebb_compute_state: {
    type: 'gauge',
    help: '1 for the last known state of the compute, 0 for the others.',
    labels: ['project', 'compute', 'branch', 'type', 'state'],
  },
  ebb_compute_min_cu: {
    type: 'gauge',
    help: 'Minimum of the autoscaling range, CU.',
    labels: IDENTITY,
  },
  ebb_compute_max_cu: {
    type: 'gauge',
    help: 'Maximum of the autoscaling range, CU.',
    labels: IDENTITY,
  },
  ebb_compute_desired_min_cu: {
    type: 'gauge',
    help: 'Minimum that policies ask for, CU; absent if they ask for none.',
    labels: IDENTITY,
  },
  ebb_compute_desired_max_cu: {
    type: 'gauge',
    help: 'Maximum that policies ask for, CU; absent if they ask for none.',
    labels: IDENTITY,
  },
  ebb_compute_suspend_timeout_seconds: {
    type: 'gauge',
    help: 'Idle time after which the compute suspends; -1 for never.',
    labels: IDENTITY,
  },
  ebb_connections: {
    type: 'gauge',
    help: 'Client connections as last counted, 0 while the compute sleeps; absent if no source counts them.',
    labels: IDENTITY,
  },
  ebb_max_connections: {
    type: 'gauge',
    help: 'max_connections, as the server reports it or as its size implies.',
    labels: IDENTITY,
  },
  ebb_connection_headroom_ratio: {
    type: 'gauge',
    help: 'Free share of the user connections.',
    labels: IDENTITY,
  },
  ebb_compute_info: {
    type: 'gauge',
    help: 'Always 1; labels of the compute, to join with its other series.',
    labels: ['project', 'compute', 'branch', 'type', 'account', 'project_name', 'region', 'owner'],
  },
} as const satisfies Record<string, MetricDeclaration>;

type ComputeMetricName = keyof typeof COMPUTE_METRICS;
type Write = (name: ComputeMetricName, labels: string, value: number | null) => void;

/** The Prometheus text of all computes (8 MB for 10,000), in pieces. Other work of the process runs between two chunks of computes. */
async function renderComputeSeries(source: ComputeSeriesSource, redact: (text: string) => string): Promise<string[]> {
  // All are read at once. Otherwise a compute that moves in the source between two chunks would appear twice, which invalidates the scrape.
  const all = uniqueByCompute(source());
  const families = new Map<ComputeMetricName, string[]>();
  for (let start = 0; start < all.length; start += CHUNK) {
    const lines = renderChunk(all.slice(start, start + CHUNK));
    for (const [name, added] of lines) {
      const family = families.get(name) ?? [];
      family.push(redact(added.join('')));
      families.set(name, family);
    }
    await nextTurn();
  }
  return [...families].flatMap(([name, pieces]) => [heading(name), ...pieces]);
}

function uniqueByCompute(all: Iterable<ComputeSeries>): ComputeSeries[] {
  const byCompute = new Map<string, ComputeSeries>();
  for (const series of all) byCompute.set(`${series.compute.projectId}/${series.compute.computeId}`, series);
  return [...byCompute.values()];
}

function renderChunk(chunk: readonly ComputeSeries[]): Map<ComputeMetricName, string[]> {
  const lines = new Map<ComputeMetricName, string[]>();
  const write: Write = (name, labels, value) => {
    if (value === null) return;
    const line = `${name}{${labels}} ${value}\n`;
    const family = lines.get(name);
    if (family === undefined) lines.set(name, [line]);
    else family.push(line);
  };
  for (const series of chunk) renderCompute(series, write);
  return lines;
}

function renderCompute(series: ComputeSeries, write: Write): void {
  const { compute, desired, owner = '' } = series;
  const identity = `${label('project', compute.projectId)},${label('compute', compute.computeId)}`;
  const place = `${identity},${label('branch', compute.branchId)},${label('type', compute.type)}`;
  for (const state of COMPUTE_STATES) {
    write('ebb_compute_state', `${place},${label('state', state)}`, compute.state === state ? 1 : 0);
  }
  write('ebb_compute_min_cu', identity, compute.minCu);
  write('ebb_compute_max_cu', identity, compute.maxCu);
  write('ebb_compute_desired_min_cu', identity, desired.minCu);
  write('ebb_compute_desired_max_cu', identity, desired.maxCu);
  write('ebb_compute_suspend_timeout_seconds', identity, compute.suspendTimeoutSeconds);
  if (series.connections) renderConnections(series.connections, identity, write);
  const names = [label('account', compute.account), label('project_name', compute.projectName)];
  write('ebb_compute_info', [place, ...names, label('region', compute.regionId), label('owner', owner)].join(','), 1);
}

function renderConnections(
  { now, max, reserved }: NonNullable<ComputeSeries['connections']>,
  identity: string,
  write: Write,
): void {
  const usable = max - reserved;
  write('ebb_connections', identity, now);
  write('ebb_max_connections', identity, max);
  write('ebb_connection_headroom_ratio', identity, usable > 0 ? Math.max(0, 1 - now / usable) : 0);
}

function heading(name: ComputeMetricName): string {
  const { type, help } = COMPUTE_METRICS[name];
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** Escapes backslash, quote and line feed, as the text format requires. */
function label(name: string, value: string): string {
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
  return `${name}="${escaped}"`;
}
