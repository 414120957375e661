/** Replays a recording of connections: a simulated compute, its clients, and a simulated daemon with the rules of the real one. */

import { type Compute, type ComputeSettings, type Size, settingsOf, sizeOf } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import {
  compactSamples,
  connectionNeeds,
  lookbackMs,
  MAX_SAMPLES,
  validityMs,
  withValidity,
} from '../connections/connection-samples.ts';
import type { ConnectionHistory, ConnectionSample } from '../connections/connections.ts';
import { searchBoundary } from '../decide/boundaries.ts';
import { evaluateNow, HEALTHY_GUARDS, type Situation } from '../evaluate/evaluate.ts';
import { withWanted } from '../evaluate/wanted-since.ts';
import { withAgreed } from '../plan/manual-changes.ts';
import type { Action } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { PolicySet } from '../policy/policy.ts';
import { type ComputeRecord, firstRecord } from '../records/compute-record.ts';
import { quantile } from '../sorted.ts';
import type { Span } from '../time/span.ts';
import { DAY_MS, MINUTE_MS } from '../time/units.ts';

/** The number of clients that wanted a connection at an instant (milliseconds since the epoch). */
export interface RecordedCount {
  atMs: number;
  connections: number;
  /** The server's `max_connections` at that time, if recorded. */
  maxConnections?: number;
}

/** The recording of one compute, and the state at its start. */
export interface Recording {
  /** The compute with its size and timeout at the start of the recording. */
  compute: Compute;
  /** The settings before ebb: where no schedule applies, headroom lowers a raised size to these. */
  baseline: ComputeSettings;
  profile: ConnectionProfile;
  /** Oldest first. There is at least one count, and at most one for each instant. */
  counts: readonly RecordedCount[];
}

const DEFAULT_INTERVAL_MS = MINUTE_MS;

/** The longest interval that a source may have. */
const LONGEST_INTERVAL_MS = DAY_MS;

/** The median interval between counts, in milliseconds. With fewer than two intervals, the default: a single one may be a gap. */
export function countIntervalMs({ counts }: Recording): number {
  const intervals = counts.slice(1).map(({ atMs }, index) => atMs - (counts[index]?.atMs ?? atMs));
  if (intervals.length < 2) return Math.min(DEFAULT_INTERVAL_MS, ...intervals);
  return Math.min(quantile(intervals, 0.5) ?? DEFAULT_INTERVAL_MS, LONGEST_INTERVAL_MS);
}

/** The end of a recording: one interval after the last count, which is valid at least that long. Milliseconds since the epoch. */
export function recordingEndMs(recording: Recording): number {
  return (recording.counts.at(-1)?.atMs ?? 0) + countIntervalMs(recording);
}

/** A time span in which nothing changed. */
export interface Stretch extends ComputeSettings, Span {
  isAwake: boolean;
  /** Clients that wanted a connection; absent while unknown. */
  demand?: number;
  /** Connections that are not reserved for the platform. */
  usable: number;
  /** New clients at the start of the stretch that could not connect. */
  refused: number;
}

export interface Replay {
  /** In order and without gaps, from the first count to the end. */
  stretches: readonly Stretch[];
  changes: readonly ReplayedChange[];
}

/**
 * Replays a recording with a simulated daemon. The daemon reconciles at each recorded count and at each instant that a plan names, with the rules
 * of the real daemon. Its source counts only clients that are connected, not those that were refused.
 */
export function replay(recording: Recording, rules: ReplayRules): Replay {
  const { counts, profile } = recording;
  const everyMs = countIntervalMs(recording);
  const endMs = recordingEndMs(recording);
  const world = simulateCompute(recording, validityMs(everyMs));
  const { compute } = world;
  const daemon = simulateDaemon(recording, rules, compute);
  const remembered = rememberCounts(rules.policies.set, everyMs);
  const usable = () => profile.maxConnections(compute) - profile.reserved;
  const stretches: Stretch[] = [];
  let unconnected = 0;
  let next = 0;
  for (let nowMs = counts[0]?.atMs ?? endMs; nowMs < endMs; nowMs = stretches.at(-1)?.toMs ?? endMs) {
    const count = counts[next]?.atMs === nowMs ? counts[next] : undefined;
    const unconnectedBefore = unconnected;
    if (count) {
      next += 1;
      world.countConnections(count.connections, nowMs);
      unconnected = Math.max(0, count.connections - usable());
    }
    world.advanceTo(nowMs);
    if (count && compute.state !== 'idle') remembered.add(count.connections - unconnected, nowMs);
    const refused = Math.max(0, unconnected - unconnectedBefore);
    const nextReconcileMs = daemon.reconcile(nowMs, remembered.history, Math.min(world.demandAt(nowMs) ?? 0, usable()));
    // Clients that a raise makes room for connect now; later, only new clients can be refused.
    unconnected = Math.min(unconnected, Math.max(0, (counts[next - 1]?.connections ?? 0) - usable()));
    const demand = world.demandAt(nowMs);
    stretches.push({
      ...settingsOf(compute),
      fromMs: nowMs,
      toMs: Math.min(counts[next]?.atMs ?? endMs, nextReconcileMs, world.nextChangeAfter(nowMs), endMs),
      isAwake: compute.state !== 'idle',
      ...(demand !== undefined && { demand }),
      usable: usable(),
      refused,
    });
  }
  return { stretches, changes: daemon.changes };
}

/** The counts that a daemon would have in its store. All sources get the same counts. */
function rememberCounts({ policies }: PolicySet, everyMs: number) {
  const sourceNames = connectionNeeds(policies).map(({ connections }) => connections);
  const windowMs = Math.max(0, ...sourceNames.map((name) => lookbackMs(name, policies)));
  const history = new Map<string, readonly ConnectionSample[]>();
  let stored: readonly ConnectionSample[] = [];
  return {
    history: history as ConnectionHistory,
    add(connections: number, atMs: number) {
      const all = [...stored, withValidity<ConnectionSample>({ atMs, connections }, everyMs)];
      stored = compactSamples(all, { nowMs: atMs, windowMs, maxSamples: MAX_SAMPLES });
      // The name '' serves changes that wait for a quiet moment: these accept the counts of any source.
      for (const name of ['', ...sourceNames]) history.set(name, all);
    },
  };
}

/** Simulates a compute that wakes for clients and sleeps after its timeout without any. A count is valid for `validForMs`. */
function simulateCompute({ compute: recorded }: Recording, validForMs: number) {
  const { startedAtMs: _started, pendingState: _pending, ...recordedFields } = recorded;
  // The compute existed when it was counted, whatever its age is now.
  const compute: Compute = { ...recordedFields, state: 'active', createdAtMs: 0 };
  let lastCount = { connections: 0, atMs: Number.NEGATIVE_INFINITY };
  let quietSinceMs = Number.POSITIVE_INFINITY;

  function sleepsAtMs(): number {
    return maySleep(compute) ? quietSinceMs + compute.suspendTimeoutSeconds * 1000 : Number.POSITIVE_INFINITY;
  }

  return {
    /** Changed in place: selections are cached by the identity of this object. */
    compute,
    /** Sets the number of clients from an instant on. */
    countConnections(connections: number, atMs: number): void {
      lastCount = { connections, atMs };
      quietSinceMs = connections > 0 ? Number.POSITIVE_INFINITY : Math.min(quietSinceMs, atMs);
      if (connections > 0 && compute.state === 'idle') Object.assign(compute, { state: 'active', startedAtMs: atMs });
    },
    /** Puts the compute to sleep if it would be asleep at this instant. */
    advanceTo(instantMs: number): void {
      if (instantMs >= sleepsAtMs()) compute.state = 'idle';
    },
    /** The number of clients that want a connection; undefined while unknown. */
    demandAt(instantMs: number): number | undefined {
      const isKnown = compute.state === 'idle' || instantMs < lastCount.atMs + validForMs;
      return isKnown ? lastCount.connections : undefined;
    },
    /** The next later instant at which the compute falls asleep or the last count expires. */
    nextChangeAfter(instantMs: number): number {
      if (compute.state === 'idle') return Number.POSITIVE_INFINITY;
      return Math.min(...[sleepsAtMs(), lastCount.atMs + validForMs].filter((ms) => ms > instantMs));
    },
  };
}

/** A change of the size, or a restart, that the simulated daemon made. */
export interface ReplayedChange {
  /** Milliseconds since the epoch. */
  atMs: number;
  before: Size;
  after: Size;
  raises: boolean;
  /** True if it restarted the compute. */
  disconnects: boolean;
  /** The number of clients that it disconnected. */
  dropped: number;
  policy: string;
}

interface ReplayRules extends Pick<Situation, 'disruption' | 'manualChanges'> {
  policies: CompiledPolicies;
}

/** Simulates a daemon in enforce mode that has long managed the compute. Its changes succeed at once and modify `compute` in place. */
function simulateDaemon({ baseline, profile }: Recording, { policies, ...settings }: ReplayRules, compute: Compute) {
  const changes: ReplayedChange[] = [];
  let record: ComputeRecord = {
    ...firstRecord(compute, 0),
    baseline,
    enforcedSinceMs: 0,
    lastApplied: settingsOf(compute),
  };

  // Boundaries do not depend on connections, so a new one is searched only after the last has passed or the settings have changed.
  let boundaryMs = Number.NEGATIVE_INFINITY;

  function applyAction({ fields, disconnects, raises, policy }: Action, nowMs: number, connectedClients: number): void {
    const before = sizeOf(compute);
    Object.assign(compute, fields, disconnects && { startedAtMs: nowMs });
    boundaryMs = nowMs;
    record = {
      ...record,
      lastApplied: { ...record.lastApplied, ...fields },
      ...(disconnects && { lastDisruption: { atMs: nowMs, lowered: !raises, policy } }),
    };
    if (fields.maxCu === undefined && !disconnects) return;
    const dropped = disconnects ? connectedClients : 0;
    changes.push({ atMs: nowMs, before, after: sizeOf(compute), raises, disconnects, dropped, policy });
  }

  return {
    changes,
    /** Applies due actions to the compute; a restart disconnects `connectedClients`. Returns the latest instant for the next reconcile. */
    reconcile(nowMs: number, connections: ConnectionHistory, connectedClients: number): number {
      const { decision, plan } = evaluateNow({
        policies,
        compute,
        record,
        nowMs,
        connections,
        profile,
        ...settings,
        ...HEALTHY_GUARDS,
        mode: 'enforce',
        projectBusy: false,
      });
      record = withAgreed(record, compute, decision);
      record = withWanted({ policies, compute, baseline: record.baseline, decision, record });
      if (plan.verdict === 'act') for (const action of plan.actions) applyAction(action, nowMs, connectedClients);
      if (nowMs >= boundaryMs) {
        const search = searchBoundary({ policies, compute, baseline }, nowMs);
        boundaryMs = search.boundaryMs ?? search.searchedUntilMs ?? Number.POSITIVE_INFINITY;
      }
      return plan.untilMs !== undefined && plan.untilMs > nowMs ? Math.min(plan.untilMs, boundaryMs) : boundaryMs;
    },
  };
}
