import type { Compute, ComputeSettings } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import {
  compactSamples,
  connectionNeeds,
  lookbackMs,
  MAX_SAMPLES,
  validityMs,
  withValidity,
} from '../connections/connection-samples.ts';
import type { ConnectionHistory, ConnectionSample } from '../connections/connections.ts';
import type { PolicySet } from '../policy/policy.ts';
import { countIntervalMs, type Recording, recordingEndMs } from './recording.ts';
import { type ReplayedChange, type ReplayRules, simulateDaemon } from './simulated-daemon.ts';

/** A time span in which nothing changed. Instants are milliseconds since the epoch. */
export interface Stretch extends ComputeSettings {
  fromMs: number;
  toMs: number;
  awake: boolean;
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
 * Replays a recording with a simulated daemon. It reconciles at each recorded count and at each instant that a plan names, with the
 * rules of the real daemon. Its source only counts clients that are connected, not those that were refused.
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
    const { minCu, maxCu, suspendTimeoutSeconds } = compute;
    stretches.push({
      ...{ minCu, maxCu, suspendTimeoutSeconds, fromMs: nowMs, awake: compute.state !== 'idle', usable: usable() },
      toMs: Math.min(counts[next]?.atMs ?? endMs, nextReconcileMs, world.nextChangeAfter(nowMs), endMs),
      ...(demand !== undefined && { demand }),
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

/** A compute simulated from a recording: it wakes for clients and sleeps after its timeout without any. */
interface SimulatedCompute {
  /** Changed in place: selections are cached by the identity of this object. */
  readonly compute: Compute;
  /** Sets the number of clients from this instant on (milliseconds since the epoch). */
  countConnections(connections: number, atMs: number): void;
  /** Puts the compute to sleep if it would be asleep at this instant. */
  advanceTo(instantMs: number): void;
  /** The number of clients that want a connection; undefined while unknown. */
  demandAt(instantMs: number): number | undefined;
  /** The next later instant at which the compute falls asleep or the last count expires. */
  nextChangeAfter(instantMs: number): number;
}

/** Simulates a compute; a count is valid for `validForMs`. */
function simulateCompute({ compute: recorded }: Recording, validForMs: number): SimulatedCompute {
  const { startedAtMs: _started, pendingState: _pending, ...recordedFields } = recorded;
  // The compute existed when it was counted, whatever its age is now.
  const compute: Compute = { ...recordedFields, state: 'active', createdAtMs: 0 };
  let lastCount = { connections: 0, atMs: Number.NEGATIVE_INFINITY };
  let quietSinceMs = Number.POSITIVE_INFINITY;

  function sleepsAtMs(): number {
    return maySleep(compute) ? quietSinceMs + compute.suspendTimeoutSeconds * 1000 : Number.POSITIVE_INFINITY;
  }

  return {
    compute,
    countConnections(connections, atMs) {
      lastCount = { connections, atMs };
      quietSinceMs = connections > 0 ? Number.POSITIVE_INFINITY : Math.min(quietSinceMs, atMs);
      if (connections > 0 && compute.state === 'idle') Object.assign(compute, { state: 'active', startedAtMs: atMs });
    },
    advanceTo(instantMs) {
      if (instantMs >= sleepsAtMs()) compute.state = 'idle';
    },
    demandAt(instantMs) {
      const isKnown = compute.state === 'idle' || instantMs < lastCount.atMs + validForMs;
      return isKnown ? lastCount.connections : undefined;
    },
    nextChangeAfter(instantMs) {
      if (compute.state === 'idle') return Number.POSITIVE_INFINITY;
      return Math.min(...[sleepsAtMs(), lastCount.atMs + validForMs].filter((ms) => ms > instantMs));
    },
  };
}
