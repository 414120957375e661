import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { METRICS, type MetricDeclaration } from '../../ports/metrics.ts';
import type { Metrics } from '../../ports/telemetry.ts';

/** Default metrics of prom-client that are gauges in spite of `_total`, which `promtool check metrics` rejects. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

interface Instruments {
  counters: Map<string, Counter>;
  gauges: Map<string, Gauge>;
  histograms: Map<string, Histogram>;
}

/** The metrics of the table, those of Node, and the registry that holds both. Registries share nothing. */
export function createMetrics({ version }: { version: string }): { registry: Registry; metrics: Metrics } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const instruments = declareAll(registry);
  const metrics = recordingInto(instruments);
  metrics.set('ebb_build_info', { version }, 1);
  return { registry, metrics };
}

function declareAll(registry: Registry): Instruments {
  const instruments: Instruments = { counters: new Map(), gauges: new Map(), histograms: new Map() };
  for (const [name, declaration] of Object.entries<MetricDeclaration>(METRICS)) {
    declare(instruments, registry, name, declaration);
  }
  return instruments;
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

/** A value that is no number, or a counter that would fall, is dropped: a measurement must never stop what it measures. */
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
