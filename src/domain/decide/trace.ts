import type { Size } from '../compute/compute.ts';
import type { FieldGroup } from '../compute/desired.ts';
import type { ReasonCode } from '../compute/reasons.ts';
import type { Hold } from '../overrides/holds.ts';
import type { PolicyBase } from '../policy/policy-base.ts';
import type { ProposedValues } from '../policy/proposed-value.ts';
import type { Restore } from '../records/compute-record.ts';

/** One step on the way to a decision; making sentences of it is left to those who show it. */
export interface TraceStep {
  group: FieldGroup;
  code: ReasonCode;
  /** The schedule that spoke; absent where none did. */
  proposal?: ProposedValues;
  /** The policy of another kind that spoke. */
  policy?: PolicyBase;
  hold?: Hold;
  restore?: Restore;
  /** What the field was before and after the step, where the step changed it. */
  before?: Size | number | null;
  after?: Size | number | null;
  /** Connections: the highest count of the window, what must be usable, and what the size gives. */
  connections?: { peak: number; need: number; usable: number };
  /** The minimum, in CU, that keeps the size from giving more connections, and up to which maximum it gives more. */
  minimum?: { minCu: number; allowsCu: number };
}
