/**
 * Facts about the control API that may differ between accounts (docs/verify.md). The first value of each is assumed until the fact has
 * been measured.
 */
export const ACCOUNT_FACTS = {
  /** A new size on a sleeping compute: does it wake? */
  idle_resize: ['stays', 'wakes'],
  /** A new timeout alone on an awake compute: does it restart? */
  timeout_change: ['stays', 'restarts'],
  /** When the project list shows a change of a compute: within 15 s, later, or not within a minute. */
  list_updated_at: ['moves', 'late', 'stays'],
  /** Does a change move `updated_at` of its compute? */
  compute_updated_at: ['moves', 'stays'],
  /** Is activity shown within 15 s? */
  last_active: ['current', 'late'],
  /** The sessions that a restart ends: all, those with a running statement, or none. */
  restart_drops: ['all', 'busy', 'none'],
  /** Do answers carry the rate limit? */
  limits: ['untold', 'told'],
} as const;

export type FactName = keyof typeof ACCOUNT_FACTS;
export type FactValue<Name extends FactName = FactName> = (typeof ACCOUNT_FACTS)[Name][number];
/** The measured facts; others are assumed. */
export type AccountFacts = { readonly [Name in FactName]?: FactValue<Name> };
/** Measured facts by account. */
export type VerifiedFacts = ReadonlyMap<string, AccountFacts>;

export const FACT_NAMES = Object.keys(ACCOUNT_FACTS) as FactName[];

/** The promises of ebb by the value of a fact. Facts without an entry change no promise. */
const PROMISES = {
  idle_resize: {
    stays: 'a new size leaves a sleeping compute asleep',
    wakes: 'a new size wakes a sleeping compute for seconds',
  },
  timeout_change: {
    stays: 'a new timeout alone disconnects nobody',
    restarts: 'a new timeout restarts an awake compute, so it waits like a smaller size',
  },
  compute_updated_at: {
    moves: 'a late reading is recognised for an hour',
    stays: 'a late reading is recognised for a minute',
  },
} as const;

type PromiseFact = keyof typeof PROMISES;

/** A promise and the fact on which it depends. */
export interface AccountPromise {
  fact: PromiseFact;
  value: FactValue;
  /** False if the value is assumed. */
  verified: boolean;
  promise: string;
}

/** The promises in an account with these measured facts. */
export function promisesOf(verified: AccountFacts): AccountPromise[] {
  return (Object.keys(PROMISES) as PromiseFact[]).map((fact) => {
    const value = verified[fact] ?? ACCOUNT_FACTS[fact][0];
    const promises: { readonly [value: string]: string } = PROMISES[fact];
    return { fact, value, verified: verified[fact] !== undefined, promise: promises[value] ?? '' };
  });
}
