import { describeChain, errorChain } from '../common/errors.ts';
import { EngineUnavailableError } from '../ports/engine.ts';
import type { BackgroundTask } from '../ports/metrics.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface Running {
  close(): Promise<void>;
}

/** The reason for which the rounds of a stopping daemon are aborted. It is no failure. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';

  constructor() {
    super('the daemon stops');
  }
}

/**
 * Runs one round of a repeated task. Never rejects: the next round tries again. Failures are counted. The log says when the task begins to
 * fail, and when it works again. An engine that can't be reached is not counted, since the engine reports that; nor is {@link StoppedError}.
 */
export type RunInBackground = (task: BackgroundTask, round: () => Promise<void>) => Promise<void>;

/** Runs the work at most once at a time: a call during a run joins that run. `ended` resolves once the present run has ended. */
export function oneAtATime(work: () => Promise<void>): { run(): Promise<void>; ended(): Promise<void> } {
  let running: Promise<void> | undefined;
  return {
    run() {
      running ??= work().finally(() => {
        running = undefined;
      });
      return running;
    },
    ended: async () => running,
  };
}

export function createRunInBackground({ log, metrics }: Telemetry): RunInBackground {
  const failing = new Set<BackgroundTask>();

  function logFailure(task: BackgroundTask, error: unknown): void {
    const isExpected = (cause: unknown) => cause instanceof EngineUnavailableError || cause instanceof StoppedError;
    if (errorChain(error).some(isExpected)) return;
    metrics.increment('ebb_background_failures_total', { task });
    if (failing.has(task)) return;
    failing.add(task);
    log.error(
      { event: 'ebb.background_failed', task, err: error },
      `background task ${task} failed and will be retried: ${describeChain(error)}`,
    );
  }

  return async (task, round) => {
    try {
      await round();
      if (failing.delete(task))
        log.info({ event: 'ebb.background_recovered', task }, `background task ${task} works again`);
    } catch (error) {
      logFailure(task, error);
    }
  };
}
