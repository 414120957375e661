/** What policies say at an instant, to every compute that they select; one shape for each stage of a decision. */

import type { Opinion } from './opinion.ts';
import type { FreezePolicy, HeadroomPolicy, LimitsPolicy, RestartPolicy } from './policy.ts';

/** Clamps what comes before. */
export interface Bounds {
  says: 'bounds';
  policy: LimitsPolicy;
  policyIndex: number;
}

/** Connections must stay free. */
export interface Need {
  says: 'need';
  policy: HeadroomPolicy;
  policyIndex: number;
}

/** A restart may be made now. */
export interface RestartWindow {
  says: 'restart';
  policy: RestartPolicy;
  policyIndex: number;
  /** Milliseconds since the epoch. */
  openSinceMs: number;
}

/** Nothing may be written now. */
export interface FreezeWindow {
  says: 'freeze';
  policy: FreezePolicy;
  policyIndex: number;
  /** When it ends, milliseconds since the epoch; absent if it does not. */
  untilMs?: number;
}

export type Statement = Opinion | Bounds | Need | RestartWindow | FreezeWindow;

/** All statements of one instant by what they say; opinions in the order in which they are heard, the rest as written. */
export interface Statements {
  opinions: readonly Opinion[];
  bounds: readonly Bounds[];
  needs: readonly Need[];
  restarts: readonly RestartWindow[];
  freezes: readonly FreezeWindow[];
}
