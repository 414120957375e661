/**
 * The operations of a fleet in few bytes: 9 for each, so that half a year of a large fleet fits into memory. Instants are whole seconds,
 * as the control API shows them.
 */

/** The effect of an operation on a compute. Any other action, also an unknown one, is `other`. */
export const OPERATION_EFFECTS = ['start', 'suspend', 'check', 'other'] as const;
export type OperationEffect = (typeof OPERATION_EFFECTS)[number];

const EFFECTS: ReadonlyMap<string, OperationEffect> = new Map([
  ['start_compute', 'start'],
  ['start_reserved_compute', 'start'],
  ['suspend_compute', 'suspend'],
  ['check_availability', 'check'],
]);

/** `none`: skipped, so nothing was done. `failed` also is an operation that was cancelled. */
export const OPERATION_RESULTS = ['done', 'none', 'failed', 'pending'] as const;
export type OperationResult = (typeof OPERATION_RESULTS)[number];

const RESULTS: ReadonlyMap<string, OperationResult> = new Map([
  ['finished', 'done'],
  ['skipped', 'none'],
  ['failed', 'failed'],
  ['error', 'failed'],
  ['cancelled', 'failed'],
]);

/** An operation as the API or a file shows it. */
export interface OperationRow {
  projectId: string;
  /** Absent where no compute is involved. */
  computeId?: string;
  action: string;
  status: string;
  createdAtMs: number;
  /** Its duration; absent where unknown. */
  durationMs?: number;
}

/** One operation of a compute. */
export interface ComputeEvent {
  atMs: number;
  effect: OperationEffect;
  result: OperationResult;
  durationMs: number;
}

/** Action and status as one number, for {@link ProjectLog.addCode}. */
export function codeOf(action: string, status: string): number {
  const effect = OPERATION_EFFECTS.indexOf(EFFECTS.get(action) ?? 'other');
  const result = OPERATION_RESULTS.indexOf(RESULTS.get(status) ?? 'pending');
  return effect * OPERATION_RESULTS.length + result;
}

/** Operations of one compute, in the order in which they came. */
interface Events {
  atS: Uint32Array<ArrayBuffer>;
  durationMs: Uint32Array<ArrayBuffer>;
  code: Uint8Array<ArrayBuffer>;
  length: number;
}

/** The operations of one project. */
export interface ProjectLog {
  readonly projectId: string;
  /** The oldest instant that is covered, milliseconds since the epoch; undefined while nothing is. */
  readonly fromMs: number | undefined;
  readonly computeIds: readonly string[];
  /** Adds one operation. Operations come in the order of their time, newest or oldest first. False if this one does not. */
  add(row: Omit<OperationRow, 'projectId'>): boolean;
  /** The same for one whose code is known; `atS` whole seconds since the epoch. */
  addCode(computeId: string | undefined, atS: number, code: number, durationMs: number): boolean;
  /** Sets the start of coverage: nothing older can be known, since all that is kept was read; or the log is complete from here on. */
  coverFrom(ms: number): void;
  /** Of one compute, oldest first. */
  eventsOf(computeId: string): ComputeEvent[];
}

export interface OperationLog {
  /** The log of a project, which is made where there is none. */
  project(projectId: string): ProjectLog;
  readonly projects: readonly ProjectLog[];
  /** The newest instant in it; undefined while it is empty. */
  readonly newestMs: number | undefined;
}

export function createOperationLog(): OperationLog {
  const projects = new Map<string, ProjectLog>();
  let newestS: number | undefined;
  const onAdded = (atS: number) => {
    if (newestS === undefined || atS > newestS) newestS = atS;
  };
  return {
    project(projectId) {
      const known = projects.get(projectId) ?? createProjectLog(projectId, onAdded);
      projects.set(projectId, known);
      return known;
    },
    get projects() {
      return [...projects.values()];
    },
    get newestMs() {
      return newestS === undefined ? undefined : newestS * 1000;
    },
  };
}

function createProjectLog(projectId: string, onAdded: (atS: number) => void): ProjectLog {
  const computes = new Map<string, Events>();
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
    add: ({ computeId, action, status, createdAtMs, durationMs = 0 }) =>
      addCode(computeId, Math.floor(createdAtMs / 1000), codeOf(action, status), durationMs),
    addCode,
    coverFrom(ms) {
      fromS = Math.min(fromS ?? Number.POSITIVE_INFINITY, Math.ceil(ms / 1000));
    },
    eventsOf(computeId) {
      const events = computes.get(computeId);
      if (events === undefined) return [];
      const all: ComputeEvent[] = [];
      for (let index = 0; index < events.length; index += 1) all.push(eventAt(events, index));
      return order === 'oldest first' ? all : all.reverse();
    },
  };
}

function grow(events: Events): void {
  const capacity = Math.ceil(events.length * 1.25);
  events.atS = widened(events.atS, new Uint32Array(capacity));
  events.durationMs = widened(events.durationMs, new Uint32Array(capacity));
  events.code = widened(events.code, new Uint8Array(capacity));
}

function widened<T extends Uint32Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

function eventAt({ atS, durationMs, code }: Events, index: number): ComputeEvent {
  const packed = code[index] ?? 0;
  return {
    atMs: (atS[index] ?? 0) * 1000,
    effect: OPERATION_EFFECTS[Math.floor(packed / OPERATION_RESULTS.length)] ?? 'other',
    result: OPERATION_RESULTS[packed % OPERATION_RESULTS.length] ?? 'pending',
    durationMs: durationMs[index] ?? 0,
  };
}
