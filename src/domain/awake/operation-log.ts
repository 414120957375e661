/**
 * The operations of a fleet, stored in 9 bytes each, so that half a year of a large fleet fits into memory. Instants are whole seconds,
 * as in the control API.
 */

import { getOrAdd } from '../grouping.ts';

/** The effects of an operation on a compute; unknown actions are `other`. */
const OPERATION_EFFECTS = ['start', 'suspend', 'check', 'other'] as const;
type OperationEffect = (typeof OPERATION_EFFECTS)[number];

const EFFECTS: ReadonlyMap<string, OperationEffect> = new Map([
  ['start_compute', 'start'],
  ['start_reserved_compute', 'start'],
  ['suspend_compute', 'suspend'],
  ['check_availability', 'check'],
]);

/** The results of operations. `none` means skipped; `failed` includes cancelled ones. */
const OPERATION_RESULTS = ['done', 'none', 'failed', 'pending'] as const;
type OperationResult = (typeof OPERATION_RESULTS)[number];

const RESULTS: ReadonlyMap<string, OperationResult> = new Map([
  ['finished', 'done'],
  ['skipped', 'none'],
  ['failed', 'failed'],
  ['error', 'failed'],
  ['cancelled', 'failed'],
]);

/** An operation as in the control API or a file. */
export interface OperationRow {
  projectId: string;
  /** Absent if no compute is involved. */
  computeId?: string;
  /** The API's name of the action; unknown ones are accepted. */
  action: string;
  status: string;
  createdAtMs: number;
  /** The platform's measurement, in milliseconds; final once the operation has ended. */
  totalDurationMs?: number;
}

/** One operation of a compute. */
export interface ComputeEvent {
  atMs: number;
  effect: OperationEffect;
  result: OperationResult;
  durationMs: number;
}

/** Encodes action and status as one number, for {@link ProjectLog.addCode}. */
export function codeOf(action: string, status: string): number {
  const effect = OPERATION_EFFECTS.indexOf(EFFECTS.get(action) ?? 'other');
  const result = OPERATION_RESULTS.indexOf(RESULTS.get(status) ?? 'pending');
  return effect * OPERATION_RESULTS.length + result;
}

/** The operations of one compute as columns, in the order in which they were added. */
interface EventColumns {
  atS: Uint32Array<ArrayBuffer>;
  durationMs: Uint32Array<ArrayBuffer>;
  code: Uint8Array<ArrayBuffer>;
  length: number;
}

/** The operations of one project. */
export interface ProjectLog {
  readonly projectId: string;
  /** The oldest covered instant, milliseconds since the epoch; undefined while nothing is covered. */
  readonly fromMs: number | undefined;
  readonly computeIds: readonly string[];
  /** Adds an operation. Operations must be sorted by time, newest or oldest first; returns false otherwise. */
  add(row: Omit<OperationRow, 'projectId'>): boolean;
  /** Adds an operation by its code; `atS` is in whole seconds since the epoch. */
  addCode(computeId: string | undefined, atS: number, code: number, durationMs: number): boolean;
  /** Sets the start of coverage: the log is complete from this instant on. */
  coverFrom(ms: number): void;
  /** The operations of one compute, oldest first. */
  eventsOf(computeId: string): ComputeEvent[];
}

export interface OperationLog {
  /** The log of a project; created if there is none. */
  project(projectId: string): ProjectLog;
  readonly projects: readonly ProjectLog[];
  /** The newest instant in the log; undefined while it is empty. */
  readonly newestMs: number | undefined;
}

export function createOperationLog(): OperationLog {
  const projects = new Map<string, ProjectLog>();
  let newestS: number | undefined;
  const onAdded = (atS: number) => {
    if (newestS === undefined || atS > newestS) newestS = atS;
  };
  return {
    project: (projectId) => getOrAdd(projects, projectId, () => createProjectLog(projectId, onAdded)),
    get projects() {
      return [...projects.values()];
    },
    get newestMs() {
      return newestS === undefined ? undefined : newestS * 1000;
    },
  };
}

function createProjectLog(projectId: string, onAdded: (atS: number) => void): ProjectLog {
  const computes = new Map<string, EventColumns>();
  let fromS: number | undefined;
  let lastS: number | undefined;
  let order: 'newest first' | 'oldest first' | undefined;

  function isInOrder(atS: number): boolean {
    if (lastS === undefined || atS === lastS) return true;
    order ??= atS < lastS ? 'newest first' : 'oldest first';
    return order === 'newest first' ? atS < lastS : atS > lastS;
  }

  function addCode(computeId: string | undefined, atS: number, code: number, durationMs: number): boolean {
    if (!isInOrder(atS)) return false;
    lastS = atS;
    if (fromS === undefined || atS < fromS) fromS = atS;
    onAdded(atS);
    if (computeId === undefined) return true;
    let events = computes.get(computeId);
    if (events === undefined) {
      events = { atS: new Uint32Array(16), durationMs: new Uint32Array(16), code: new Uint8Array(16), length: 0 };
      computes.set(computeId, events);
    }
    if (events.length === events.atS.length) grow(events);
    events.atS[events.length] = atS;
    events.durationMs[events.length] = durationMs;
    events.code[events.length] = code;
    events.length += 1;
    return true;
  }

  return {
    projectId,
    get fromMs() {
      return fromS === undefined ? undefined : fromS * 1000;
    },
    get computeIds() {
      return [...computes.keys()];
    },
    add: ({ computeId, action, status, createdAtMs, totalDurationMs = 0 }) =>
      addCode(computeId, Math.floor(createdAtMs / 1000), codeOf(action, status), totalDurationMs),
    addCode,
    coverFrom(ms) {
      fromS = Math.min(fromS ?? Number.POSITIVE_INFINITY, Math.ceil(ms / 1000));
    },
    eventsOf(computeId) {
      const events = computes.get(computeId);
      if (events === undefined) return [];
      const all = Array.from({ length: events.length }, (_, index) => eventAt(events, index));
      return order === 'oldest first' ? all : all.reverse();
    },
  };
}

function grow(events: EventColumns): void {
  const capacity = Math.ceil(events.length * 1.25);
  events.atS = copiedTo(events.atS, new Uint32Array(capacity));
  events.durationMs = copiedTo(events.durationMs, new Uint32Array(capacity));
  events.code = copiedTo(events.code, new Uint8Array(capacity));
}

function copiedTo<T extends Uint32Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

function eventAt({ atS, durationMs, code }: EventColumns, index: number): ComputeEvent {
  const packed = code[index] ?? 0;
  return {
    atMs: (atS[index] ?? 0) * 1000,
    effect: OPERATION_EFFECTS[Math.floor(packed / OPERATION_RESULTS.length)] ?? 'other',
    result: OPERATION_RESULTS[packed % OPERATION_RESULTS.length] ?? 'pending',
    durationMs: durationMs[index] ?? 0,
  };
}
