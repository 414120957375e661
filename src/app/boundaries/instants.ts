import { type Clock, timerMs } from '../../ports/clock.ts';

/** A clock that is set back would have them wait for as long; so much later than expected they look at it again. Real milliseconds. */
const SLACK_MS = 500;

/** Instants that several wait for: all go on together, in their order. */
export interface Instants {
  /**
   * Resolves at the instant, or a little later than it was expected at where the clock has been set back; first for those with the
   * smallest `order`, then for those who came first. Rejects when who waits is stopped; those who wait for one instant are stopped
   * together.
   */
  come(instantMs: number, signal: AbortSignal, order?: number): Promise<void>;
}

interface Waiter {
  order: number;
  resolve(): void;
  reject(reason: unknown): void;
}

/** One timer for each instant: timers of each one's own would fire in any order. */
export function createInstants(clock: Pick<Clock, 'realDelayMs' | 'sleepUntil'>): Instants {
  const waits = new Map<number, Waiter[]>();

  async function sleep(instantMs: number, signal: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(timerMs(Math.ceil(clock.realDelayMs(instantMs)) + SLACK_MS));
    try {
      await clock.sleepUntil(instantMs, AbortSignal.any([signal, late]));
    } catch (error) {
      if (!late.aborted) throw error;
    }
  }

  /** Those who wait by the time it is over, in their order. */
  function leave(instantMs: number): Waiter[] {
    const waiters = waits.get(instantMs) ?? [];
    waits.delete(instantMs);
    return waiters.toSorted((a, b) => a.order - b.order);
  }

  return {
    come(instantMs, signal, order = 0) {
      const isFirst = !waits.has(instantMs);
      const waiters = waits.get(instantMs) ?? [];
      waits.set(instantMs, waiters);
      const coming = new Promise<void>((resolve, reject) => waiters.push({ order, resolve, reject }));
      if (isFirst) {
        void sleep(instantMs, signal).then(
          () => {
            for (const waiter of leave(instantMs)) waiter.resolve();
          },
          (reason) => {
            for (const waiter of leave(instantMs)) waiter.reject(reason);
          },
        );
      }
      return coming;
    },
  };
}
