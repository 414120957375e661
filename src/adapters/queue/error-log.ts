import type { Log } from '../../ports/telemetry.ts';

/** How long an error that is the same as before stays unsaid. */
const QUIET_MS = 60_000;
const MOST_REMEMBERED = 100;

/** Errors that only say that the engine is away; the engine itself says that, once. */
const CONNECTION_ERROR =
  /Connection is closed|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|isn't writeable|max retries per request|Command timed out|Connection terminated|LOADING/i;

export interface ErrorLog {
  report(error: Error): void;
}

/** Says each error of BullMQ once a minute at most: an outage makes one for every worker and every try. */
export function createErrorLog({ log }: { log: Log }): ErrorLog {
  const saidAtMs = new Map<string, number>();
  return {
    report: (error) => {
      const { code } = error as NodeJS.ErrnoException;
      if (CONNECTION_ERROR.test(`${code ?? ''} ${error.message}`)) return;
      const nowMs = performance.now();
      const said = saidAtMs.get(error.message);
      if (said !== undefined && nowMs - said < QUIET_MS) return;
      if (saidAtMs.size >= MOST_REMEMBERED) saidAtMs.clear();
      saidAtMs.set(error.message, nowMs);
      log.warn({ err: error }, 'queue error');
    },
  };
}
