import { type Clock, timerMs } from '../../ports/clock.ts';

/** A clock that is set back would have them wait for as long; so much later than expected they look at it again. Real milliseconds. */
const SLACK_MS = 500;

/** Instants that several wait for: all go on together, in the order in which they came. */
export interface Instants {
  /**
   * Resolves at the instant, or a little later than it was expected at where the clock has been set back. Rejects when who waits is
   * stopped; those who wait for one instant are stopped together.
   */
  come(instantMs: number, signal: AbortSignal): Promise<void>;
}

/** One timer for each instant: timers of each one's own would fire in any order. */
export function createInstants(clock: Pick<Clock, 'realDelayMs' | 'sleepUntil'>): Instants {
  const waits = new Map<number, Promise<void>>();

  async function wait(instantMs: number, signal: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(timerMs(Math.ceil(clock.realDelayMs(instantMs)) + SLACK_MS));
    try {
      await clock.sleepUntil(instantMs, AbortSignal.any([signal, late]));
    } catch (error) {
      if (!late.aborted) throw error;
    } finally {
      waits.delete(instantMs);
    }
  }

  return {
    come(instantMs, signal) {
      const known = waits.get(instantMs) ?? wait(instantMs, signal);
      waits.set(instantMs, known);
      return known;
    },
  };
}
