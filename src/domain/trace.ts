import type { Size } from './compute.ts';
import type { FieldGroup } from './desired.ts';
import type { Hold } from './holds.ts';
import type { Opinion } from './opinion.ts';
import type { Policy } from './policy.ts';
import type { ReasonCode } from './reasons.ts';
import type { Restore } from './restore.ts';

/** One step on the way to a decision; making sentences of it is left to those who show it. */
export interface TraceStep {
  group: FieldGroup;
  code: ReasonCode;
  /** The schedule that spoke; absent where none did. */
  opinion?: Opinion;
  /** The policy of another kind that spoke. */
  policy?: Policy;
  hold?: Hold;
  restore?: Restore;
  /** What the field was before and after the step, where the step changed it. */
  before?: Size | number | null;
  after?: Size | number | null;
  /** Connections: the highest count of the window, what must be usable, and what the size gives. */
  connections?: { peak: number; need: number; usable: number };
}
