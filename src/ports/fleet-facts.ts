import type { ComputeSettings } from '../domain/compute/compute.ts';

/** What a fleet file may know of a compute and the control API has no field for. */
export interface ComputeFacts {
  /** Clients that were connected when the file was made. */
  connections?: number;
  /** What the compute had before ebb's first change. */
  baseline?: ComputeSettings;
}

/** Facts by id of the compute; a live control API has none. */
export type FleetFacts = ReadonlyMap<string, ComputeFacts>;
