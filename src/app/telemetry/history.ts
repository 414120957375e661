import type { ComputeSettings } from '../../domain/compute/compute.ts';
import { type Action, reasonsOf } from '../../domain/plan/plan.ts';
import type { HistoryEntry } from '../../domain/records/history.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ComputeEvent } from '../../ports/compute-events.ts';
import type { Store } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';

/** What has happened is written together, so often, in real milliseconds. */
const FLUSH_EVERY_MS = 500;
/** While the store is away no more than this wait for it; the newest stay. */
const MOST_WAITING = 2_000;
const MOST_AT_ONCE = 200;

export interface RememberingOptions {
  store: Pick<Store, 'appendHistory'>;
  log: Log;
  clock: Pick<Clock, 'now' | 'every'>;
  /** Of the policies that decide now. */
  setHash(): string;
  /** What the policies were made from, such as a commit. */
  revision(): string | undefined;
}

export interface EventMemory {
  /** Never waits and never throws. */
  remember(event: ComputeEvent): void;
  /** Writes what is left, and ends. */
  close(): Promise<void>;
}

/**
 * Makes the history of decisions of what happens to computes. It is for people to read later: a store that is away, or full, costs
 * entries, never a change.
 */
export function recordHistory(options: RememberingOptions): EventMemory {
  const { store, log, clock } = options;
  let waiting: HistoryEntry[] = [];
  let failed = false;

  async function write(): Promise<void> {
    while (waiting.length > 0) {
      const some = waiting.slice(0, MOST_AT_ONCE);
      waiting = waiting.slice(some.length);
      try {
        await store.appendHistory(some);
        failed = false;
      } catch (error) {
        const message = 'the history of decisions could not be written: entries are missing, nothing else';
        if (!failed) log.warn({ event: 'ebb.history_failed', err: error, entries: some.length }, message);
        failed = true;
      }
    }
  }

  const rounds = clock.every(FLUSH_EVERY_MS, write);

  return {
    remember(event) {
      const entry = entryOf(event);
      if (!entry) return;
      const revision = options.revision();
      const base = { atMs: clock.now(), setHash: options.setHash(), ...(revision !== undefined && { revision }) };
      waiting.push({ ...base, ...entry });
      if (waiting.length > MOST_WAITING) waiting.shift();
    },
    async close() {
      await rounds.close();
      await write();
    },
  };
}

type Entry = Omit<HistoryEntry, 'atMs' | 'setHash' | 'revision'>;

/** What people ask about later; undefined for what is only a step on the way. */
function entryOf(event: ComputeEvent): Entry | undefined {
  const { projectId, computeId } = event.compute;
  const place = { projectId, computeId };
  switch (event.kind) {
    case 'write_ended':
      return { ...place, ...changeOf(event.compute, event.action), ...outcomeOf(event) };
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
        ...{ ...place, kind: 'manual', from: event.applied, to: fieldsLike(event.applied, event.compute) },
        reasons: [{ code: 'manual_change', message: event.message }],
      };
    case 'degraded':
      return {
        ...{ ...place, kind: 'operation', to: event.desired },
        reasons: [{ code: 'degraded', message: `${event.failures} failures, last: ${event.message}` }],
      };
    default:
      return undefined;
  }
}

function outcomeOf({
  action,
  outcome,
  reasons,
  error,
}: Extract<ComputeEvent, { kind: 'write_ended' }>): Pick<HistoryEntry, 'kind' | 'reasons'> {
  const kind = action.kind === 'restart' ? 'restart' : 'write';
  if (outcome === 'applied') return { kind, reasons };
  const message = `not changed: ${outcome}${error ? `: ${error.message}` : ''}`;
  return { kind, reasons: [...reasons, { code: outcome, message }] };
}

function changeOf(compute: ComputeSettings, { policy, fields }: Action): Pick<HistoryEntry, 'policy' | 'from' | 'to'> {
  return { policy, from: fieldsLike(fields, compute), to: fields };
}

/** The values of the same fields. */
function fieldsLike(fields: Partial<ComputeSettings>, values: ComputeSettings): Partial<ComputeSettings> {
  return {
    ...(fields.minCu !== undefined && { minCu: values.minCu }),
    ...(fields.maxCu !== undefined && { maxCu: values.maxCu }),
    ...(fields.suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds: values.suspendTimeoutSeconds }),
  };
}
