/** Stored data of daemons, as the HTTP API gives them to commands of the same version: the format may change. */
import type { GuardState } from '../domain/guards/state.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { ConnectionSample } from './store.ts';

/** The stored usage of a unit of an organization. */
export interface UsageDocument {
  /** `PROJECT` or `PROJECT/BRANCH`; a space for data of the whole organization. */
  unit: string;
  /** Base64; only ebb interprets it. */
  bytes: string;
}

export interface RecordsDocument {
  project_id: string;
  /** By compute id. */
  records: Record<string, ComputeRecord>;
  /** Connection counts, oldest first, of computes that have any; empty where no policy asks for counts. */
  samples: Record<string, readonly ConnectionSample[]>;
  /** The last verdicts of guards, and their watches; absent where no policy is a guard, and in answers of older versions. */
  guards?: Record<string, readonly GuardState[]>;
}

/** The stored readings of some projects, uninterpreted. */
export interface ReadingsDocument {
  collection: string;
  /** By name. */
  documents: Record<string, string>;
  /** The instant of the answer, by the store's clock. */
  at: string;
}
