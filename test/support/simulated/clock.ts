import type { Clock } from '../../../src/ports/clock.ts';

/** Rounds that come more often than this would only make a week longer: whatever they do waits for ten minutes. */
const SHORTEST_ROUND_MS = 600_000;

/** Turns of the event loop in which nothing happens: then everybody waits for the clock. */
const QUIET_TURNS = 3;

/** Cheaper than that of node:timers/promises, and taken at every step. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Timer {
  instantMs: number;
  callback: () => void;
  isOff: boolean;
}

/** Time that stands still while anything is done, and goes on to the next instant that somebody waits for. */
export interface SteppedClock extends Clock {
  /** Calls back at an instant, at once if it has passed. Returns how to call that off. */
  at(instantMs: number, callback: () => void): () => void;
  /** Goes on to an instant, through all that is due until then. */
  runTo(instantMs: number): Promise<void>;
}

/** `isBusy`: somebody waits for an answer from outside of the process. Where nothing does, one quiet turn of the event loop is enough. */
export function createSteppedClock(
  startMs: number,
  isBusy: () => boolean,
  { shortestRoundMs = SHORTEST_ROUND_MS, quietTurns = QUIET_TURNS } = {},
): SteppedClock {
  /** The next one last; of one instant, those that were set first. */
  const timers: Timer[] = [];
  let nowMs = startMs;
  let inTurn = 0;

  function at(instantMs: number, callback: () => void): () => void {
    const timer = { instantMs: Math.max(instantMs, nowMs), callback, isOff: false };
    let [from, to] = [0, timers.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((timers[middle] as Timer).instantMs > timer.instantMs) from = middle + 1;
      else to = middle;
    }
    timers.splice(from, 0, timer);
    return () => {
      timer.isOff = true;
    };
  }

  /** Takes the timers of the next instant out, if there are some until `untilMs`. */
  function takeDue(untilMs: number): Timer[] {
    while (timers.at(-1)?.isOff) timers.pop();
    const due: Timer[] = [];
    const nextMs = Math.min(untilMs, timers.at(-1)?.instantMs ?? untilMs);
    while (timers.at(-1)?.instantMs === nextMs) due.push(timers.pop() as Timer);
    return due;
  }

  function sleepUntil(instantMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        cancel();
        reject(signal.reason);
      };
      const cancel = at(instantMs, () => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
  }

  function every(intervalMs: number, tick: () => Promise<void>) {
    const step = Math.max(intervalMs, shortestRoundMs);
    let running = Promise.resolve();
    const round = () => {
      running = tick();
      cancel = at(nowMs + step, round);
    };
    let cancel = at(nowMs + step, round);
    return {
      async close() {
        cancel();
        await running;
      },
    };
  }

  async function takeTurn(): Promise<void> {
    inTurn += 1;
    await nextTurn();
    inTurn -= 1;
  }

  async function settle(): Promise<void> {
    for (let quiet = 0; quiet < quietTurns; quiet = isBusy() || inTurn > 0 ? 0 : quiet + 1) await nextTurn();
  }

  return {
    ...{ at, sleepUntil, every, nextTurn: takeTurn },
    wait: (ms, signal = new AbortController().signal) => sleepUntil(nowMs + ms, signal),
    timeout(ms) {
      const controller = new AbortController();
      at(nowMs + ms, () => controller.abort(new DOMException('the time is over', 'TimeoutError')));
      return controller.signal;
    },
    now: () => nowMs,
    monotonicMs: () => nowMs - startMs,
    realDelayMs: (instantMs) => Math.max(0, instantMs - nowMs),
    async runTo(instantMs) {
      for (;;) {
        await settle();
        const due = takeDue(instantMs);
        if (due.length === 0) break;
        nowMs = Math.max(nowMs, due[0]?.instantMs ?? nowMs);
        for (const timer of due) if (!timer.isOff) timer.callback();
      }
      nowMs = instantMs;
    },
  };
}
