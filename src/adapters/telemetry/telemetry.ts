import type { ComputeSeriesSource, Telemetry } from '../../ports/telemetry.ts';
import { renderComputeSeries } from './compute-series.ts';
import { createLog, type LogOptions } from './log.ts';
import { createMetrics } from './metrics.ts';
import { createRedactor } from './redactor.ts';

export interface TelemetryOptions {
  level: LogOptions['level'];
  version: string;
  /** Values that must appear in no line and no metric. */
  secrets: readonly string[];
  /** Where the log goes. Default: standard output. */
  destination?: LogOptions['destination'];
  /** Log for people instead of JSON. Default: when the log goes to standard output and that is a terminal. */
  pretty?: boolean;
  /** Series for each compute. Default: true. */
  perComputeMetrics?: boolean;
}

export interface ProcessTelemetry extends Telemetry {
  /** Everything for /metrics, in the Prometheus text format. */
  text(): Promise<{ contentType: string; body: string }>;
  /** From now on the series of each compute come from this source. */
  seriesFrom(source: ComputeSeriesSource): void;
  /** Hides one more value, e.g. a key that was rotated. */
  hide(secret: string): void;
}

/** Log and metrics of one process. Two of them share nothing but standard output. */
export function createTelemetry(options: TelemetryOptions): ProcessTelemetry {
  const { level, version, secrets, destination, perComputeMetrics = true } = options;
  const { pretty = destination === undefined && process.stdout.isTTY === true } = options;
  const redactor = createRedactor(secrets);
  const { registry, metrics } = createMetrics({ version });
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
