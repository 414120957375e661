import type { Size } from '../compute/compute.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import { LONGEST_WAVE_LEAD_MS } from './waves.ts';

/** The wishes of a schedule while a window is open, or outside. Absent: no value for that field. */
export interface ScheduleValues {
  size?: Size;
  /** Canonical seconds: −1 never, else 60..604800. */
  suspendTimeoutSeconds?: number;
}

export interface ScheduleWindow extends ScheduleValues {
  /** Open while any of these is open. */
  at: readonly TimeSpec[];
  /** Effective at its start: raises begin this much earlier. */
  readyLeadMs?: number;
  /** Each compute has the lead of its wave, and `readyLeadMs` where its wave is not known. */
  readyInWaves?: true;
}

/** The leads at which a window may begin to speak, whatever compute is asked about: its waves are instants of the compute's own. */
export function leadsOf({ readyLeadMs, readyInWaves }: ScheduleWindow): number[] {
  if (readyLeadMs === undefined) return [];
  return readyInWaves ? [LONGEST_WAVE_LEAD_MS, readyLeadMs] : [readyLeadMs];
}
