/** The evidence of experiments. Instants end in `AtMs` (since the epoch, our clock); other times are monotonic milliseconds. */

import type { Compute, ComputeSettings } from '../../domain/compute/compute.ts';
import type { ChangeAnswer, Operation, Project } from '../../ports/control-api.ts';

/** One round of readings; fields that could not be read are absent. */
export interface Sample {
  begunMs: number;
  endedMs: number;
  endedAtMs: number;
  compute?: Compute;
  /** Newest first. */
  operations?: readonly Operation[];
  /** The project as listed. */
  listed?: Project;
}

/** The second of two equal samples in a row: the project is at rest. */
export type Settled = Sample & Required<Pick<Sample, 'compute' | 'operations'>>;

interface Sent {
  before: Settled;
  sentAtMs: number;
  answeredMs: number;
  answeredAtMs: number;
  /** Operations in the answer. */
  operations: readonly Operation[];
  seen: readonly Sample[];
}

/** A PATCH and what followed. */
export interface WatchedChange extends Sent {
  patch: Partial<ComputeSettings>;
  answer: ChangeAnswer;
}

/** A restart with two sessions; `open` tells which of them survived. */
export interface WatchedRestart extends Sent {
  open: { idle: boolean; busy: boolean };
}

/** A client that ran a statement and left, and the readings that followed. */
export interface WatchedActivity {
  before: Settled;
  usedAtMs: number;
  leftMs: number;
  leftAtMs: number;
  seen: readonly Sample[];
}

/** The value of a fact by one run of an experiment, or why the run shows none. */
export type Outcome = { value: string; seconds?: number } | { why: string };
