/** What an experiment has seen. Instants end in `AtMs` (since the epoch, our clock); other times are monotonic milliseconds. */

import type { Compute, ComputeSettings } from '../../domain/compute/compute.ts';
import type { ChangeAnswer, Operation, Project } from '../../ports/control-api.ts';

/** One round of readings; what could not be read is absent. */
export interface Sample {
  begunMs: number;
  endedMs: number;
  /** Of {@link endedMs}. */
  endedAtMs: number;
  compute?: Compute;
  /** Newest first. */
  operations?: readonly Operation[];
  /** The project as the list shows it. */
  listed?: Project;
}

/** Two equal samples in a row, of which this is the second: nothing is going on. */
export type Settled = Sample & Required<Pick<Sample, 'compute' | 'operations'>>;

interface Sent {
  before: Settled;
  sentAtMs: number;
  answeredMs: number;
  answeredAtMs: number;
  /** Operations of the answer. */
  operations: readonly Operation[];
  seen: readonly Sample[];
}

/** A PATCH and what followed. */
export interface WatchedChange extends Sent {
  patch: Partial<ComputeSettings>;
  answer: ChangeAnswer;
}

/** A restart with two sessions, and which of them were still open after it. */
export interface WatchedRestart extends Sent {
  open: { idle: boolean; busy: boolean };
}

/** A statement of a client that then left, and readings of when the compute was last active. */
export interface WatchedActivity {
  before: Settled;
  usedAtMs: number;
  leftMs: number;
  leftAtMs: number;
  seen: readonly Sample[];
}

/** What one run of an experiment says of a fact, or why it says nothing. */
export type Outcome = { value: string; seconds?: number } | { why: string };
