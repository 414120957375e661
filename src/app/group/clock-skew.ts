import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** A daemon whose clock is off from the store's by more than this, in milliseconds, writes nothing: it would write at a wrong time. */
export const MAX_CLOCK_OFFSET_MS = 2_000;

/** The largest difference between the clocks of two daemons that may both write, in milliseconds. */
export const MAX_CLOCK_SKEW_MS = 2 * MAX_CLOCK_OFFSET_MS;

/** The clock is compared again after a larger jump against monotonic time, in milliseconds: it was set, or the machine was suspended. */
const JUMP_MS = 1_000;

/** The offset between this machine's clock and the store's, in real milliseconds. */
export interface StoreClock {
  /** Compares the clocks. Throws if the store can't be reached. */
  compare(): Promise<void>;
  /** Returns the offset if it is larger than allowed, positive if this clock is ahead. Compares again if the clock was set meanwhile. */
  excessiveOffsetMs(): Promise<number | undefined>;
  /** Returns the offset at the last comparison if it was larger than allowed, without another one. */
  lastExcessiveOffsetMs(): number | undefined;
}

interface Comparison {
  offsetMs: number;
  /** Half of the duration of the request to the store: the offset is uncertain by this much. */
  uncertaintyMs: number;
  /** The machine's time minus monotonic time, at the comparison. */
  machineMinusMonotonicMs: number;
}

export function createStoreClock({
  store,
  clock,
  machineMs,
  telemetry,
}: {
  store: Pick<Store, 'timeMs'>;
  clock: Pick<Clock, 'monotonicMs'>;
  /** The machine's time, milliseconds since the epoch; never simulated. */
  machineMs: () => number;
  telemetry: Telemetry;
}): StoreClock {
  let last: Comparison | undefined;

  const machineMinusMonotonicMs = () => machineMs() - clock.monotonicMs();

  function excessiveOffset(): number | undefined {
    if (last === undefined || Math.abs(last.offsetMs) - last.uncertaintyMs <= MAX_CLOCK_OFFSET_MS) return undefined;
    return last.offsetMs;
  }

  async function compare(): Promise<void> {
    const askedMs = clock.monotonicMs();
    const storeMs = await store.timeMs();
    const uncertaintyMs = (clock.monotonicMs() - askedMs) / 2;
    // Read after the answer, so that only one of several concurrent comparisons logs a change.
    const before = excessiveOffset();
    last = {
      offsetMs: machineMs() - uncertaintyMs - storeMs,
      uncertaintyMs,
      machineMinusMonotonicMs: machineMinusMonotonicMs(),
    };
    telemetry.metrics.set('ebb_clock_offset_seconds', {}, last.offsetMs / 1000);
    logChange(telemetry, before, excessiveOffset());
  }

  return {
    compare,
    async excessiveOffsetMs() {
      if (last === undefined || Math.abs(machineMinusMonotonicMs() - last.machineMinusMonotonicMs) > JUMP_MS)
        await compare();
      return excessiveOffset();
    },
    lastExcessiveOffsetMs: excessiveOffset,
  };
}

export function describeOffset(offsetMs: number): string {
  return `${(Math.abs(offsetMs) / 1000).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the group's time`;
}

function logChange({ log }: Telemetry, before: number | undefined, after: number | undefined): void {
  if (after !== undefined && before === undefined) {
    const what = `this machine's clock is ${describeOffset(after)}: nothing is written until it is corrected`;
    log.error({ event: 'ebb.clock_off', offset_ms: Math.round(after) }, what);
  }
  if (after === undefined && before !== undefined) {
    log.info({ event: 'ebb.clock_corrected' }, "this machine's clock agrees with the store clock again");
  }
}
