/**
 * What policies say at an instant, to every compute that they select. A directive carries all that the stages need, so a policy of any
 * kind may give it; of the policy they read nothing but what every policy has.
 */
import type { FieldGroup } from '../compute/desired.ts';
import type { PolicyBase } from './policy-base.ts';
import type { ProposedValues } from './proposed-value.ts';

interface Said {
  policy: PolicyBase;
  /** Place of the policy in its set; a later one wins a tie. */
  policyIndex: number;
}

/** Two bounds of one group as plain numbers: CU, or seconds with "never" as infinity. */
export interface Range {
  low: number;
  high: number;
}

/** Clamps what comes before. */
export interface Bounds extends Said {
  says: 'bounds';
  /** Of the groups that it bounds. */
  ranges: { readonly [G in FieldGroup]?: Range };
  /** Wins over headroom and over what a person set. */
  hard: boolean;
}

/** Which connections must stay free. Shares are in (0, 1]. */
export interface ConnectionNeed {
  /** Name of the source of connection counts. */
  connections: string;
  targetShare: number;
  /** From here on a raise does not wait. */
  criticalShare?: number;
  maxCu: number;
  mayRaiseMin: boolean;
  /** How long less must have been enough before it goes back. */
  scaleDownAfterMs: number;
  act: 'apply' | 'advise';
}

/** Connections must stay free. */
export interface Need extends Said {
  says: 'need';
  need: ConnectionNeed;
}

/** A restart may be made now. */
export interface RestartWindow extends Said {
  says: 'restart';
  /** Milliseconds since the epoch. */
  openSinceMs: number;
  /** Not again before this has passed since the last start. */
  everyMs?: number;
  /** Only while fewer connections than this are open. */
  connectionsBelow?: number;
}

/** Nothing may be written now, except raises where they are allowed. */
export interface FreezeWindow extends Said {
  says: 'freeze';
  allowRaise: boolean;
  /** When it ends, milliseconds since the epoch; absent if it does not. */
  untilMs?: number;
}

/** A new member needs a place in the order of effective-policies.ts and a stage in decide.ts; without them, these do not compile. */
export type Directive = ProposedValues | Bounds | Need | RestartWindow | FreezeWindow;

/** What directives can say. */
export type Says = Directive['says'];

/** All directives of one instant by what they say, each list in the order of {@link ./effective-policies.ts}. */
export type Directives = { readonly [S in Says]: readonly Extract<Directive, { says: S }>[] };
