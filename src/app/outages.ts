import type { Telemetry } from '../ports/telemetry.ts';

/** Says once that a dependency is down, and once that it is back; counts the outages. */
export interface Outages {
  down(dependency: string, message: string): void;
  up(dependency: string): void;
  /** What is down now, with the first message of its outage. */
  current(): ReadonlyMap<string, string>;
}

export function createOutages({ log, metrics }: Telemetry): Outages {
  const down = new Map<string, string>();
  return {
    down(dependency, message) {
      if (down.has(dependency)) return;
      down.set(dependency, message);
      metrics.increment('ebb_outages_total', { dependency });
      log.error({ event: 'ebb.outage', dependency }, `${dependency} is not available: ${message}; carrying on`);
    },
    up(dependency) {
      if (!down.delete(dependency)) return;
      log.info({ event: 'ebb.recovered', dependency }, `${dependency} is available again`);
    },
    current: () => down,
  };
}
