import type { Engine } from '../../ports/engine.ts';
import type { Log } from '../../ports/telemetry.ts';

/** How long an error that is the same as before stays unsaid. */
const QUIET_MS = 60_000;
const MOST_REMEMBERED = 100;

export interface ErrorLog {
  report(error: Error): void;
}

/** Says each error of BullMQ once a minute at most, and none that only says that the engine is away: the engine does, once. */
export function createErrorLog({ engine, log }: { engine: Engine; log: Log }): ErrorLog {
  const saidAtMs = new Map<string, number>();
  return {
    report: (error) => {
      if (engine.isAway(error)) return;
      const nowMs = performance.now();
      const said = saidAtMs.get(error.message);
      if (said !== undefined && nowMs - said < QUIET_MS) return;
      if (saidAtMs.size >= MOST_REMEMBERED) saidAtMs.clear();
      saidAtMs.set(error.message, nowMs);
      log.warn({ err: error }, 'queue error');
    },
  };
}
