import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simulatedClock } from '../../src/adapters/clock/simulated-clock.ts';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import type { Clock } from '../../src/ports/clock.ts';

const DAY_MS = 86_400_000;
const MORNING_MS = Date.UTC(2026, 10, 23, 6, 0, 0);
const NO_ABORT = new AbortController().signal;

/** A real time that moves only when told. */
function steppedTime() {
  let monotonicMs = 12_345.678;
  let nowMs = Date.UTC(2026, 0, 1);
  return {
    nowMs: () => nowMs,
    monotonicMs: () => monotonicMs,
    advance(ms: number) {
      monotonicMs += ms;
      nowMs += ms;
    },
    setWallClock(ms: number) {
      nowMs = ms;
    },
  };
}

const clocks: [string, () => Clock][] = [
  ['the system clock', systemClock],
  [
    'a simulated clock',
    () =>
      simulatedClock({
        table: [
          { realMs: 0, simulatedMs: MORNING_MS },
          { realMs: 1_000, simulatedMs: MORNING_MS + DAY_MS },
        ],
      }),
  ],
];

describe.each(clocks)('%s', (_name, makeClock) => {
  it('has reached the instant when a sleep ends', async () => {
    const clock = makeClock();
    const instantMs = clock.now() + 40;
    await clock.sleepUntil(instantMs, NO_ABORT);
    expect(clock.now()).toBeGreaterThanOrEqual(instantMs);
    expect(clock.realDelayMs(instantMs)).toBe(0);
  });

  it('does not wait for an instant that has passed', async () => {
    const clock = makeClock();
    await clock.sleepUntil(clock.now() - DAY_MS, NO_ABORT);
  });

  it('rejects a sleep with the reason of the abort, before and while it waits', async () => {
    const clock = makeClock();
    const farMs = clock.now() + 400 * DAY_MS;
    const reason = new Error('closing');
    await expect(clock.sleepUntil(farMs, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    const sleep = clock.sleepUntil(farMs, controller.signal);
    controller.abort(reason);
    await expect(sleep).rejects.toBe(reason);
  });

  it('keeps the process alive by a wait, unless it is not to', () => {
    const clock = makeClock();
    const end = new AbortController();
    const keeping = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = keeping();
    const waits = [clock.wait(60_000, end.signal, { ref: false })];
    expect(keeping()).toBe(before);
    waits.push(clock.wait(60_000, end.signal));
    expect(keeping()).toBe(before + 1);
    end.abort();
    return Promise.allSettled(waits);
  });

  it('measures durations that never run backwards', () => {
    const clock = makeClock();
    const first = clock.monotonicMs();
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(first);
  });

  it('never starts a tick while the one before still runs, and waits for it on close', async () => {
    const clock = makeClock();
    let running = 0;
    let most = 0;
    let ended = 0;
    const gate: (() => void)[] = [];
    const ticks = clock.every(1, async () => {
      most = Math.max(most, ++running);
      if (ended === 0) await new Promise<void>((resolve) => gate.push(resolve));
      running--;
      ended++;
    });
    await expect.poll(() => gate).toHaveLength(1);
    let intervals = 0;
    const meanwhile = clock.every(1, async () => {
      intervals++;
    });
    await expect.poll(() => intervals).toBeGreaterThan(5);
    await meanwhile.close();
    gate[0]?.();
    await expect.poll(() => ended).toBeGreaterThan(3);
    await ticks.close();
    const atClose = ended;
    expect(running).toBe(0);
    expect(most).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toBe(atClose);
  });
});

describe('every', () => {
  it('goes on after a tick that rejected, and tells of it', async () => {
    const errors: unknown[] = [];
    const clock = systemClock({ onTickError: (error) => errors.push(error) });
    let calls = 0;
    const ticks = clock.every(1, async () => {
      calls++;
      throw new Error(`tick ${calls}`);
    });
    await expect.poll(() => calls).toBeGreaterThan(2);
    await ticks.close();
    expect(errors).toHaveLength(calls);
    expect(errors[0]).toEqual(new Error('tick 1'));
  });
});

describe('a simulated clock on a real time that is stepped', () => {
  it('has reached an instant after its real delay and not two milliseconds earlier, at any rate from real time up', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        fc.double({ min: 1, max: 5_000, noNaN: true }),
        fc.integer({ min: 0, max: 100_000 }),
        fc.integer({ min: -1_000, max: 3 * DAY_MS }),
        (realMs, rate, elapsedMs, aheadMs) => {
          const realTime = steppedTime();
          const table = [
            { realMs: 0, simulatedMs: MORNING_MS },
            { realMs, simulatedMs: MORNING_MS + Math.round(realMs * rate) },
          ];
          const clock = simulatedClock({ table, realTime });
          realTime.advance(elapsedMs);
          const instantMs = clock.now() + aheadMs;
          const delayMs = clock.realDelayMs(instantMs);
          if (delayMs > 2) {
            realTime.advance(delayMs - 2);
            expect(clock.now()).toBeLessThan(instantMs);
            realTime.advance(2);
          } else {
            realTime.advance(delayMs);
          }
          expect(clock.now()).toBeGreaterThanOrEqual(instantMs);
          expect(clock.realDelayMs(instantMs)).toBe(0);
        },
      ),
      { examples: [[1, 1, 0, 511_945]] },
    );
  });

  it('does not run backwards when the machine sets its clock back', () => {
    const realTime = steppedTime();
    const clock = simulatedClock({ table: [{ realMs: 0, simulatedMs: MORNING_MS }], realTime });
    realTime.advance(500);
    realTime.setWallClock(0);
    expect(clock.now()).toBe(MORNING_MS + 500);
  });

  it('agrees with another that was made later with the same start', () => {
    const realTime = steppedTime();
    const startedAtMs = realTime.nowMs();
    const table = [
      { realMs: 0, simulatedMs: MORNING_MS },
      { realMs: 45_000, simulatedMs: MORNING_MS + DAY_MS },
    ];
    const daemon = simulatedClock({ table, startedAtMs, realTime });
    realTime.advance(4_321);
    const emulator = simulatedClock({ table, startedAtMs, realTime });
    realTime.advance(7_777);
    expect(emulator.now()).toBe(daemon.now());
  });
});
