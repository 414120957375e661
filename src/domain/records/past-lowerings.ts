/** The lowerings of a compute in the past, from its audit and history. Instants are milliseconds since the epoch. */

import { type ComputeSettings, FIELD_GROUPS, type FieldGroup, fieldsOf } from '../compute/compute.ts';
import { LONGEST_WATCH_MS } from '../guards/watch.ts';
import { lowerBound } from '../sorted.ts';
import { type HistoryEntry, tookEffect } from './history.ts';
import { withLastChange } from './lag.ts';
import { type Lowering, type LoweringFacts, loweringOf } from './lowerings.ts';

export type PastEntry = Pick<HistoryEntry, 'atMs' | 'kind' | 'policy' | 'from' | 'to' | 'reasons' | 'requestId'>;

export interface PastLowerings {
  /** Oldest first. */
  all: readonly Lowering[];
  /** When entries may have begun or ended a lowering, ascending. */
  instants: readonly number[];
  /** The number of changes whose earlier values are not known: each may be a lowering. */
  unknownChanges: number;
  /** The lowering that guards watched at an instant. Undefined for one that was made up to `concludedAtMs`, since its harm is known already. */
  at(atMs: number, concludedAtMs?: number): Lowering | undefined;
}

/** The facts that are known after an entry. */
interface State extends LoweringFacts {
  atMs: number;
  /** True while a person holds the compute. The audit does not show when a hold expires, so the next change by a policy counts as its end. */
  isHeld?: boolean;
  /** The fields of the last change, whose operations may fail. */
  written?: Partial<ComputeSettings>;
  /** The values before requests that got no answer, by the id of the request. */
  sent: ReadonlyMap<string, Partial<ComputeSettings>>;
  unknownChanges: number;
}

/** Reads entries, oldest first. Findings of `guard` itself are left out, since a replay makes them again. */
export function pastLowerings(entries: readonly PastEntry[], guard: string): PastLowerings {
  const states: State[] = [];
  const all: Lowering[] = [];
  let state: State = { atMs: 0, lastApplied: {}, sent: new Map(), unknownChanges: 0 };
  for (const entry of entries) {
    state = { ...stateAfter(state, entry, guard), atMs: entry.atMs };
    states.push(state);
    const lowering = state.isHeld ? undefined : loweringOf(state, Number.NEGATIVE_INFINITY);
    if (lowering?.atMs === entry.atMs) all.push(lowering);
  }
  const instants = states.map(({ atMs }) => atMs);
  return {
    all,
    instants,
    unknownChanges: state.unknownChanges,
    at(atMs, concludedAtMs = Number.NEGATIVE_INFINITY) {
      const then = states[lowerBound(instants, atMs + 1) - 1];
      if (!then || then.isHeld) return undefined;
      const loweredAtMs = Math.max(then.guardFinding?.loweredAtMs ?? concludedAtMs, concludedAtMs);
      return loweringOf({ ...then, guardFinding: { loweredAtMs } }, atMs - LONGEST_WATCH_MS);
    },
  };
}

function stateAfter(state: State, entry: PastEntry, guard: string): State {
  const { kind, atMs, policy } = entry;
  switch (kind) {
    case 'write':
      return stateAfterWrite(state, entry);
    case 'manual':
      return { ...state, manual: { ...state.manual, ...byGroup(entry.to, true) } };
    case 'operation':
      return withFailed(state, entry.to ?? state.written ?? {}, atMs);
    case 'hold':
      return { ...state, isHeld: entry.reasons.some(({ code }) => code === 'hold') };
    case 'guard': {
      const lowering = policy === guard ? undefined : loweringOf(state, Number.NEGATIVE_INFINITY);
      return lowering ? { ...state, guardFinding: { loweredAtMs: lowering.atMs } } : state;
    }
    default:
      return state;
  }
}

function stateAfterWrite(state: State, entry: PastEntry): State {
  const { atMs, policy, from, to = {}, reasons, requestId = '' } = entry;
  if (!tookEffect(entry)) {
    const sent = from ? new Map([...state.sent, [requestId, from]]) : state.sent;
    const isFailure = ['refused', 'confirmed'].includes(reasons.at(-1)?.code ?? '');
    return isFailure ? withFailed({ ...state, sent }, to, atMs) : { ...state, sent };
  }
  const before = from ?? state.sent.get(requestId) ?? state.lastApplied;
  const lastChanges = { ...state.lastChanges };
  const manual = { ...state.manual };
  let { unknownChanges } = state;
  for (const group of FIELD_GROUPS.filter((one) => fieldsOf(one, to))) {
    delete lastChanges[group];
    delete manual[group];
    if (!fieldsOf(group, before)) unknownChanges += 1;
  }
  const lastApplied = { ...state.lastApplied, ...to };
  const setBy = { ...state.setBy, ...byGroup(to, policy) };
  const isHeld = state.isHeld === true && policy?.startsWith('hold ') === true;
  const next = { ...state, isHeld, written: to, lastChanges, manual, lastApplied, setBy, unknownChanges };
  return withLastChange(next, to, { before, answeredAtMs: atMs });
}

function withFailed(state: State, fields: Partial<ComputeSettings>, lastAtMs: number): State {
  return { ...state, failures: { ...state.failures, ...byGroup(fields, { lastAtMs }) } };
}

/** A value for each group that has fields. */
function byGroup<T>(fields: Partial<ComputeSettings> | undefined, value: T): Partial<Record<FieldGroup, T>> {
  const groups = FIELD_GROUPS.filter((group) => fields && fieldsOf(group, fields));
  return Object.fromEntries(groups.map((group) => [group, value]));
}
