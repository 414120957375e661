/** What commands that may change several computes are answered with. */
import type { SetBy } from '../domain/records/compute-record.ts';
import type { Acknowledged, ComputeName, SettingsDocument } from './documents.ts';

/** How many computes a command changes, or would change; absent where that is not known, as in what a daemon of 0.1.0 answers. */
interface Counted {
  count?: number;
}

export interface ApproveDocument extends Counted {
  hash: string;
}

/** Counted are computes with a change that a freeze holds back. */
export interface UnfreezeDocument extends Acknowledged, Counted {
  /** Ids of the freezes that are over. */
  freezes: string[];
}

export interface ReleaseDocument extends Acknowledged, Counted {
  /** Ids of the holds that are gone. */
  holds: string[];
  /** Computes whose stopped fights or respected manual changes are forgotten. */
  computes: ComputeName[];
  /** Names of budgets whose steps end as soon as the leader comes to it. */
  budgets: string[];
}

export interface RestoreDocument extends Acknowledged, Counted {
  computes: (ComputeName & {
    baseline: SettingsDocument;
    /**
     * `requested`: it goes back as far as no policy sets a value; `policies_decide`: policies will change it again, it takes a
     * hold; `nothing_to_do`: ebb never changed it, or it is back already, or no request waits that could be withdrawn; `withdrawn`: it
     * no longer goes back.
     */
    outcome: 'requested' | 'policies_decide' | 'nothing_to_do' | 'withdrawn';
    /** Of one that goes back: what does not, because policies decide it. */
    policies_decide?: ('size' | 'suspend_timeout')[];
    /** The policy that sets what does not go back. */
    set_by?: SetBy;
  })[];
}
