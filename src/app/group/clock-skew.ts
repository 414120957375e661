import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** A daemon whose clock is further off writes nothing: it would act on boundaries at another time than the others. */
export const MOST_OFF_MS = 2_000;

/** So far apart are the clocks of two daemons that may both write, at most. */
export const MAX_CLOCK_SKEW_MS = 2 * MOST_OFF_MS;

/** A clock that has moved so much against its monotonic time was set, or slept: it is compared again at once. */
const JUMP_MS = 1_000;

/** The offset between this machine's clock and the store's. Milliseconds; real time. */
export interface StoreClock {
  /** Compares again. Throws if the store can't be asked. */
  compare(): Promise<void>;
  /** Ahead of the group if positive, if it is further off than allowed; compares again if the clock was set meanwhile. */
  tooFarOff(): Promise<number | undefined>;
  /** The offset at the last comparison. */
  wasTooFarOff(): number | undefined;
}

interface Comparison {
  offsetMs: number;
  /** Half of the time that asking took: the offset may be less by that. */
  doubtMs: number;
  /** Machine's time less monotonic time, at the comparison. */
  leadMs: number;
}

export interface StoreClockOptions {
  store: Pick<Store, 'timeMs'>;
  clock: Pick<Clock, 'monotonicMs'>;
  /** The machine's time, milliseconds since the epoch; never simulated. */
  machineMs: () => number;
  telemetry: Telemetry;
}

export function createStoreClock({ store, clock, machineMs, telemetry }: StoreClockOptions): StoreClock {
  let last: Comparison | undefined;

  const leadMs = () => machineMs() - clock.monotonicMs();

  function farOff(): number | undefined {
    if (last === undefined || Math.abs(last.offsetMs) - last.doubtMs <= MOST_OFF_MS) return undefined;
    return last.offsetMs;
  }

  async function compare(): Promise<void> {
    const askedMs = clock.monotonicMs();
    const groupMs = await store.timeMs();
    const doubtMs = (clock.monotonicMs() - askedMs) / 2;
    // Compared only after the answer: of several concurrent comparisons one reports the change.
    const before = farOff();
    last = { offsetMs: machineMs() - doubtMs - groupMs, doubtMs, leadMs: leadMs() };
    telemetry.metrics.set('ebb_clock_offset_seconds', {}, last.offsetMs / 1000);
    logChange(telemetry, before, farOff());
  }

  return {
    compare,
    async tooFarOff() {
      if (last === undefined || Math.abs(leadMs() - last.leadMs) > JUMP_MS) await compare();
      return farOff();
    },
    wasTooFarOff: farOff,
  };
}

/** `2.4 s ahead of the group's time`. */
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
