import type { ApiKey } from './accounts.ts';
import type { Branch, Compute, Operation, Project, WorldEvent } from './entities.ts';

export type RefusalCode =
  | 'invalid'
  | 'unauthorised'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'precondition'
  | 'not_ready'
  | 'locked';

/** Why a command was not carried out; the world is as before. */
export interface Refusal {
  code: RefusalCode;
  message: string;
}

/** What a command was about, and the operations that it started. */
interface Done {
  ok: true;
  project?: Project;
  branch?: Branch;
  compute?: Compute;
  key?: ApiKey;
  operations: Operation[];
}

export type Outcome = Done | { ok: false; refusal: Refusal };

export interface Execution {
  outcome: Outcome;
  /** What happened since the last command, this one included. */
  events: WorldEvent[];
}

export function refuse(code: RefusalCode, message: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code, message } };
}

export const LOCKED_MESSAGE =
  'project already has running conflicting operations, scheduling of new ones is prohibited';
