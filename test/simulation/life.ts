/** The life of one simulated process: everything that it does waits here, so that it can be stopped in the middle, or killed. */

import type { Clock } from '../../src/ports/clock.ts';
import type { SteppedClock } from '../support/simulated/clock.ts';

/** The longest sleep of a process before it looks at its clock again, in milliseconds: the clock may have been set. */
const LONGEST_NAP_MS = 5_000;

const TIMED_OUT = new DOMException('the time is over', 'TimeoutError');

/** Rounds that come more often only make a simulation slower, in milliseconds: those of seconds, and those that look for news all the time. */
const SHORTEST_ROUND_MS = 5_000;
const SHORTEST_LOOK_MS = 10_000;
const LOOKS_MS = 2_000;

export interface Life {
  readonly isKilled: boolean;
  /** How far its machine's clock is ahead, in milliseconds. */
  offsetMs: number;
  /** Since when the machine's clock is off by this, in true time. */
  offsetSinceMs: number;
  /** Nothing of it goes on from now; what it waits for never comes. */
  kill(): void;
  /** Nothing of it goes on until this instant of true time. */
  stallUntil(instantMs: number): void;
  /** Resolves after so many milliseconds of true time, later if it is stalled then, never if it is killed. */
  pass(ms: number, signal?: AbortSignal): Promise<void>;
  /** The clock that the process sees. */
  clock: Clock;
}

export function createLife(time: SteppedClock, onTickError: (error: unknown) => void): Life {
  let isKilled = false;
  let stalledUntilMs = 0;

  /** Calls back at an instant of true time while it lives. */
  function at(instantMs: number, callback: () => void): () => void {
    let cancel = time.at(instantMs, function due() {
      if (isKilled) return;
      if (time.now() >= stalledUntilMs) return callback();
      cancel = time.at(stalledUntilMs, due);
    });
    return () => cancel();
  }

  function pass(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 && !isKilled && time.now() >= stalledUntilMs) return Promise.resolve();
    return new Promise((resolve, reject) => {
      if (isKilled) return;
      const stop = () => {
        cancel();
        if (!isKilled) reject(signal?.reason);
      };
      const cancel = at(time.now() + Math.max(0, ms), () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      });
      if (signal?.aborted) stop();
      else signal?.addEventListener('abort', stop, { once: true });
    });
  }

  const life: Life = {
    get isKilled() {
      return isKilled;
    },
    offsetMs: 0,
    offsetSinceMs: 0,
    kill() {
      isKilled = true;
    },
    stallUntil(instantMs) {
      stalledUntilMs = Math.max(stalledUntilMs, instantMs);
    },
    pass,
    clock: {} as Clock,
  };
  const now = () => Math.floor(time.now() + life.offsetMs);
  const realDelayMs = (instantMs: number) => Math.max(0, instantMs - now());
  life.clock = {
    now,
    realDelayMs,
    monotonicMs: () => time.monotonicMs(),
    async sleepUntil(instantMs, signal) {
      signal.throwIfAborted();
      for (let restMs = realDelayMs(instantMs); restMs > 0; restMs = realDelayMs(instantMs))
        await pass(Math.min(restMs, LONGEST_NAP_MS), signal);
    },
    every(wantedMs, tick) {
      const intervalMs = Math.max(wantedMs, wantedMs <= LOOKS_MS ? SHORTEST_LOOK_MS : SHORTEST_ROUND_MS);
      let running: Promise<void> | undefined;
      const round = () => {
        running ??= tick()
          .catch(onTickError)
          .finally(() => {
            running = undefined;
          });
        cancel = at(time.now() + intervalMs, round);
      };
      let cancel = at(time.now() + intervalMs, round);
      return {
        async close() {
          cancel();
          await running;
        },
      };
    },
    wait: (ms, signal) => pass(ms, signal),
    timeout(ms) {
      const controller = new AbortController();
      at(time.now() + ms, () => controller.abort(TIMED_OUT));
      return controller.signal;
    },
    async nextTurn() {
      await time.nextTurn();
      await pass(0);
    },
  };
  return life;
}
