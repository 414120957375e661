import type { Size } from '../compute/compute.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import { LONGEST_WAVE_LEAD_MS } from './waves.ts';

/** The values of a schedule in a window, or outside of all. Absent fields have no value. */
export interface ScheduleValues {
  size?: Size;
  /** A canonical timeout: −1 for never, else 60..604800 seconds. */
  suspendTimeoutSeconds?: number;
}

export interface ScheduleWindow extends ScheduleValues {
  /** The window is open while any of these times is. */
  at: readonly TimeSpec[];
  /** Raises begin this much before the start, in milliseconds. */
  readyLeadMs?: number;
  /** Set if each compute has the lead of its wave; `readyLeadMs` applies where that is unknown. */
  readyInWaves?: true;
}

/** The leads, in milliseconds, of the earliest possible wave (with waves) and of a raise without one. A compute's own wave may be later than both. */
export function leadsOf({ readyLeadMs, readyInWaves }: ScheduleWindow): number[] {
  if (readyLeadMs === undefined) return [];
  return readyInWaves ? [LONGEST_WAVE_LEAD_MS, readyLeadMs] : [readyLeadMs];
}
