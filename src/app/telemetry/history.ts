import type { ComputeSettings } from '../../domain/compute/compute.ts';
import { type Action, reasonsOf } from '../../domain/plan/plan.ts';
import type { HistoryEntry } from '../../domain/records/history.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeEvent } from '../../ports/compute-events.ts';
import type { Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { CurrentRules } from '../rules.ts';

/** Events are written in batches, at this interval in real milliseconds. */
const FLUSH_EVERY_MS = 500;
/** At most this many entries, the newest, wait in memory while the store is slow. */
const MAX_WAITING = 2_000;
const MAX_AT_ONCE = 200;

export interface EventMemory {
  /** Never waits and never throws. */
  remember(event: ComputeEvent): void;
  /** Writes the remaining entries, and ends. */
  close(): Promise<void>;
}

/** Records the history of decisions from events of computes. A store that is unavailable or full costs history entries, never a change. */
export function recordHistory(options: {
  store: Pick<Store, 'appendHistory'>;
  log: Log;
  clock: Pick<Clock, 'now' | 'every'>;
  rules: CurrentRules;
}): EventMemory {
  const { store, log, clock } = options;
  let waiting: HistoryEntry[] = [];
  let hasFailed = false;

  async function write(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_AT_ONCE);
      waiting = waiting.slice(batch.length);
      try {
        await store.appendHistory(batch);
        hasFailed = false;
      } catch (error) {
        const message = 'the history of decisions could not be written: entries are missing, nothing else';
        if (!hasFailed) log.warn({ event: 'ebb.history_failed', err: error, entries: batch.length }, message);
        hasFailed = true;
      }
    }
  }

  const rounds = clock.every(FLUSH_EVERY_MS, write);

  return {
    remember(event) {
      const entry = entryOf(event);
      if (!entry) return;
      waiting.push({ ...entry, atMs: clock.now(), ...decidedBy(options.rules) });
      if (waiting.length > MAX_WAITING) waiting.shift();
    },
    async close() {
      await rounds.close();
      await write();
    },
  };
}

/** The current policy set and its source. */
export function decidedBy({
  current: { policies, revision },
}: CurrentRules): Pick<HistoryEntry, 'setHash' | 'revision'> {
  return { setHash: policies.set.hash, ...(revision !== undefined && { revision }) };
}

/** At its start a daemon searches this many entries for events that were reported before. */
const MAX_SEARCHED = 5_000;

/**
 * Returns a function that tells whether an event repeats the newest history entry of its compute, at most once for each compute: a restart of the
 * daemon must not report all waiting changes again. Writes of other fields may have followed that entry. If the history can't be read, no event
 * counts as a repetition.
 */
export async function repeatsOf(store: Pick<Store, 'history'>): Promise<(event: ComputeEvent) => boolean> {
  const newest = new Map<string, HistoryEntry>();
  const written = new Map<string, string[]>();
  for (const entry of await store.history({ limit: MAX_SEARCHED }).catch(() => [])) {
    const { computeId, kind, to = {} } = entry;
    if (newest.has(computeId)) continue;
    if (kind === 'write') written.set(computeId, [...(written.get(computeId) ?? []), ...Object.keys(to)]);
    else newest.set(computeId, entry);
  }
  return (event) => {
    const { computeId } = event.compute;
    const before = newest.get(computeId);
    newest.delete(computeId);
    const entry = event.kind === 'held_back' ? entryOf(event) : undefined;
    if (before === undefined || entry === undefined || contentOf(before) !== contentOf(entry)) return false;
    return !written.get(computeId)?.some((field) => field in (entry.to ?? {}));
  };
}

function contentOf({ kind, policy, from, to, reasons }: Entry): string {
  const values = [from, to].map((one) => [one?.minCu, one?.maxCu, one?.suspendTimeoutSeconds]);
  // Sorted and without duplicates: several actions that are due at the same time may give the same reasons, in any order.
  return JSON.stringify([kind, policy, values, [...new Set(reasons.map(({ code }) => code))].sort()]);
}

type Entry = Omit<HistoryEntry, 'atMs' | 'setHash' | 'revision'>;

/** The history entry of an event; undefined for an event without one. Entries of writes are not made here: they are stored with the results. */
function entryOf(event: ComputeEvent): Entry | undefined {
  const { projectId, computeId } = event.compute;
  const place = { projectId, computeId };
  switch (event.kind) {
    case 'held_back': {
      const action = event.plan.held?.[0];
      if (!action) return undefined;
      return { ...place, ...changeOf(event.compute, action), kind: 'held', reasons: reasonsOf(event.plan) };
    }
    case 'operation_ended': {
      const { action, status, outcome, error } = event.operation;
      if (outcome === 'succeeded') return undefined;
      const message = `${action} ended as ${status}${error ? `: ${error}` : ''}`;
      const policy = event.policy === undefined ? {} : { policy: event.policy };
      return { ...place, ...policy, kind: 'operation', reasons: [{ code: 'operation_failed', message }] };
    }
    case 'manual_change':
      return {
        ...place,
        kind: 'manual',
        from: event.applied,
        to: fieldsLike(event.applied, event.compute),
        reasons: [{ code: 'manual_change', message: event.message }],
      };
    case 'degraded':
      return {
        ...place,
        kind: 'operation',
        to: event.desired,
        reasons: [{ code: 'degraded', message: `${event.failures} failures, last: ${event.message}` }],
      };
    default:
      return undefined;
  }
}

/** The values of a change, before and after. */
export function changeOf(
  compute: ComputeSettings,
  { policy, fields }: Action,
): Pick<HistoryEntry, 'policy' | 'from' | 'to'> {
  return { policy, from: fieldsLike(fields, compute), to: fields };
}

/** Picks from `values` the fields that `fields` has. */
function fieldsLike(fields: Partial<ComputeSettings>, values: ComputeSettings): Partial<ComputeSettings> {
  return {
    ...(fields.minCu !== undefined && { minCu: values.minCu }),
    ...(fields.maxCu !== undefined && { maxCu: values.maxCu }),
    ...(fields.suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds: values.suspendTimeoutSeconds }),
  };
}
